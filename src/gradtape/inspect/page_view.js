// The canvas: boxes and edges, pan and zoom. Only what is on the screen is drawn, and text only where it can be read.

const FONT = 'Inter, system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif';
const FAMILIES = [
  ["Products", /matmul|einsum|dot|conv|product|solve|cholesky|inv|qr|svd|eig|det/, "#6366f1"],
  ["Activations", /relu|elu|tanh|sigmoid|softmax|softplus|gelu|silu|swish|mish|norm|dropout|entropy/, "#e0702f"],
  ["Reductions", /^(sum|mean|max|min|prod|any|all|variance|std|logsumexp)$|cumsum|cumprod|segment|reduce|pool/, "#a855c7"],
  ["Shape and index", /reshape|transpose|concat|stack|split|take|gather|getitem|slice|pad|tile|squeeze|expand|broadcast|scatter|roll|reverse|where|cast|identity|repeat/, "#7c8aa0"],
];
const ELEMENTWISE = "#2f9fd0";
const LEAVES = { variable: ["Variables", "#14a08c"], watched: ["Watched", "#3b6fe0"], constant: ["Constants", "#98a2b3"] };
const READABLE = 0.75; // the scale from which on text is
const FAR = 1200; // an edge longer than this is a hint only, or a reused value would cover everything
const MANY = 60; // so many of these hints at a time
const RAMP = [[68, 119, 210], [86, 180, 190], [240, 200, 90], [214, 60, 50]];

class View {
  constructor(canvas, map) {
    this.canvas = canvas;
    this.map = map;
    this.context = canvas.getContext("2d");
    this.scale = 1;
    this.x = this.y = 0;
    this.boxes = [];
    this.edges = [];
    this.colour = "kind";
    this.selected = null;
    this.path = null;
    this.onSelect = this.onOpen = () => {};
    this.listen();
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
  }

  // Content

  show(tape) {
    this.tape = tape;
    this.boxes = tape.boxes();
    for (const box of this.boxes) this.measure(box);
    this.edges = tape.edges();
    const { centres, chains } = layered(this.boxes, this.edges.map((edge) => [edge.from, edge.to]));
    this.boxes.forEach((box, i) => { [box.x, box.y] = centres[i]; });
    this.edges.forEach((edge, i) => this.route(edge, chains[i]));
    this.bounds = bounding(this.boxes);
    this.scales = scalesOf(this.boxes);
    this.background = null;
    this.map.style.height = `${Math.round(Math.min(190, Math.max(50, (150 * this.bounds.height) / this.bounds.width)))}px`;
    this.draw();
  }

  measure(box) {
    const c = this.context;
    c.font = `600 13px ${FONT}`;
    box.shownTitle = fitted(c, box.title, box.single ? 210 : 250);
    const title = c.measureText(box.shownTitle).width;
    c.font = `400 11.5px ${FONT}`;
    box.shownSubtitle = fitted(c, box.subtitle, 250);
    box.width = Math.max(84, Math.ceil(Math.max(title, c.measureText(box.shownSubtitle).width)) + 32);
    box.height = 46;
  }

  route(edge, stations) {
    const back = edge.from > edge.to;
    const [a, b] = back ? [this.boxes[edge.to], this.boxes[edge.from]] : [this.boxes[edge.from], this.boxes[edge.to]];
    edge.back = back;
    edge.points = [[a.x, a.y + a.height / 2], ...stations, [b.x, b.y - b.height / 2]];
    edge.left = Math.min(...edge.points.map((p) => p[0]));
    edge.right = Math.max(...edge.points.map((p) => p[0]));
    edge.top = edge.points[0][1];
    edge.bottom = edge.points[edge.points.length - 1][1];
    edge.isLong = edge.bottom - edge.top > FAR;
  }

  // Camera

  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas.parentElement;
    const ratio = window.devicePixelRatio || 1;
    this.width = width;
    this.height = height;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    this.ratio = ratio;
    this.draw();
  }

  toScreen(x, y) { return [(x - this.x) * this.scale + this.width / 2, (y - this.y) * this.scale + this.height / 2]; }

  toWorld(x, y) { return [(x - this.width / 2) / this.scale + this.x, (y - this.height / 2) / this.scale + this.y]; }

  zoomAt(factor, x = this.width / 2, y = this.height / 2) {
    const [wx, wy] = this.toWorld(x, y);
    this.scale = Math.min(3, Math.max(this.smallest(), this.scale * factor));
    this.x = wx - (x - this.width / 2) / this.scale;
    this.y = wy - (y - this.height / 2) / this.scale;
    this.draw();
  }

  smallest() {
    const { width, height } = this.bounds;
    return Math.min(0.5, 0.8 * Math.min(this.width / (width + 1), this.height / (height + 1)));
  }

  fit() {
    const { left, top, width, height } = this.bounds;
    this.scale = Math.min(1.1, (this.width - 60) / (width + 1), (this.height - 100) / (height + 1));
    this.moveTo(left + width / 2, top + height / 2 - 18 / this.scale, false);
  }

  // The first sight of a tape: all of it if it can be read like that, and otherwise its beginning.
  begin() {
    this.fit();
    if (this.scale < READABLE) {
      const { left, top, width } = this.bounds;
      this.scale = Math.max(READABLE, Math.min(1, (this.width - 80) / (width + 1)));
      const first = this.boxes.filter((box) => box.y < top + this.height / this.scale);
      const x = width * this.scale > this.width ? first.reduce((sum, box) => sum + box.x, 0) / first.length : left + width / 2;
      this.moveTo(x, top + (this.height / 2 - 90) / this.scale, false);
    }
  }

  moveTo(x, y, smooth = true) {
    cancelAnimationFrame(this.motion);
    if (!smooth || matchMedia("(prefers-reduced-motion: reduce)").matches) {
      [this.x, this.y] = [x, y];
      this.draw();
      return;
    }
    const [x0, y0, began] = [this.x, this.y, performance.now()];
    const step = (now) => {
      const t = Math.min(1, (now - began) / 220), eased = 1 - (1 - t) ** 3;
      this.x = x0 + (x - x0) * eased;
      this.y = y0 + (y - y0) * eased;
      this.draw();
      if (t < 1) this.motion = requestAnimationFrame(step);
    };
    this.motion = requestAnimationFrame(step);
  }

  focus(box) {
    if (this.scale < 0.5) this.scale = 0.8;
    this.moveTo(box.x, box.y);
  }

  // Interaction

  listen() {
    const { canvas } = this;
    let from = null, moved = false;
    canvas.addEventListener("pointerdown", (event) => {
      from = [event.offsetX, event.offsetY, this.x, this.y];
      moved = false;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!from) {
        canvas.classList.toggle("over", this.boxAt(event.offsetX, event.offsetY) !== null);
        return;
      }
      const dx = event.offsetX - from[0], dy = event.offsetY - from[1];
      if (Math.abs(dx) + Math.abs(dy) > 4) moved = true;
      if (moved) {
        canvas.classList.add("dragging");
        this.moveTo(from[2] - dx / this.scale, from[3] - dy / this.scale, false);
      }
    });
    canvas.addEventListener("pointerup", (event) => {
      canvas.classList.remove("dragging");
      if (from && !moved) this.onSelect(this.boxAt(event.offsetX, event.offsetY));
      from = null;
    });
    canvas.addEventListener("dblclick", (event) => {
      const box = this.boxAt(event.offsetX, event.offsetY);
      if (box) this.onOpen(box);
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const unit = event.deltaMode === 1 ? 20 : 1;
      this.zoomAt(Math.exp(-event.deltaY * unit * (event.ctrlKey ? 0.01 : 0.0016)), event.offsetX, event.offsetY);
    }, { passive: false });
    const jump = (event) => {
      const { k, left, top } = this.mapping();
      this.moveTo((event.offsetX - left) / k, (event.offsetY - top) / k, false);
    };
    this.map.addEventListener("pointerdown", (event) => { this.map.setPointerCapture(event.pointerId); jump(event); });
    this.map.addEventListener("pointermove", (event) => { if (event.buttons) jump(event); });
  }

  boxAt(sx, sy) {
    const [x, y] = this.toWorld(sx, sy);
    return this.boxes.find((b) => Math.abs(x - b.x) <= b.width / 2 && Math.abs(y - b.y) <= b.height / 2) || null;
  }

  // Drawing

  draw() {
    if (!this.pending && this.tape && this.width) {
      this.pending = requestAnimationFrame(() => { this.pending = 0; this.paint(); });
    }
  }

  paint() {
    const c = this.context, style = getComputedStyle(document.documentElement), known = new Map();
    this.css = (name) => {
      if (!known.has(name)) known.set(name, style.getPropertyValue(`--${name}`).trim());
      return known.get(name);
    };
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.fillStyle = this.css("ground");
    c.fillRect(0, 0, this.width, this.height);
    this.paintDots(c);
    const k = this.ratio * this.scale, [ox, oy] = this.toScreen(0, 0);
    c.setTransform(k, 0, 0, k, ox * this.ratio, oy * this.ratio);
    const [left, top] = this.toWorld(0, 0), [right, bottom] = this.toWorld(this.width, this.height);
    const near = this.edges.filter((e) => e.right > left - 40 && e.left < right + 40 && e.bottom > top && e.top < bottom);
    this.paintEdges(c, near);
    for (const box of this.boxes) {
      const w = box.width / 2, h = box.height / 2;
      if (box.x + w > left && box.x - w < right && box.y + h > top && box.y - h < bottom) this.paintBox(c, box);
    }
    if (this.scale > 0.55) this.paintNorms(c, near);
    this.paintMap();
    this.painted = true;
  }

  paintDots(c) {
    const step = 28 * this.scale;
    if (step < 14) return;
    const [ox, oy] = this.toScreen(0, 0);
    c.fillStyle = this.css("line");
    for (let x = ox % step; x < this.width; x += step) {
      for (let y = oy % step; y < this.height; y += step) c.fillRect(x, y, 1.5, 1.5);
    }
  }

  isOnPath(edge) { return this.path !== null && edge.ends.some(([a, b]) => this.path.nodes.has(a) && this.path.nodes.has(b)); }

  paintEdges(c, edges) {
    const quiet = edges.filter((edge) => !this.isOnPath(edge)), loud = edges.filter((edge) => this.isOnPath(edge)), alpha = this.path ? 0.35 : 1;
    c.lineWidth = Math.max(1.2, 0.7 / this.scale);
    c.globalAlpha = 0.1 * alpha;
    this.stroke(c, quiet.filter((edge) => edge.isLong).slice(0, MANY), this.css("faint"));
    c.globalAlpha = alpha;
    const near = quiet.filter((edge) => !edge.isLong);
    if (this.colour === "gradient") {
      for (const edge of near) this.stroke(c, [edge], edge.norm == null ? this.css("line") : this.heat(edge.norm, "norm"));
    } else {
      this.stroke(c, near, this.css("faint"));
    }
    c.globalAlpha = 1;
    c.lineWidth = Math.max(2.6, 1.6 / this.scale);
    const broken = this.path && !this.path.connected;
    this.stroke(c, loud, this.css(broken ? "red" : "accent"));
  }

  stroke(c, edges, colour) {
    const far = this.scale < 0.3;
    c.strokeStyle = c.fillStyle = colour;
    for (const back of [false, true]) {
      c.beginPath();
      c.setLineDash(back ? [5, 4] : []);
      for (const edge of edges) if (edge.back === back) this.trace(c, edge, far);
      c.stroke();
    }
    c.setLineDash([]);
    if (far) return;
    c.beginPath();
    for (const edge of edges) {
      const [x, y] = edge.back ? edge.points[0] : edge.points[edge.points.length - 1];
      const d = edge.back ? 1 : -1;
      c.moveTo(x, y);
      c.lineTo(x - 4, y + 7 * d);
      c.lineTo(x + 4, y + 7 * d);
    }
    c.fill();
  }

  trace(c, edge, far) {
    const { points } = edge;
    c.moveTo(...points[0]);
    for (let i = 1; i < points.length; i++) {
      const [x0, y0] = points[i - 1], [x1, y1] = points[i], middle = (y0 + y1) / 2;
      if (far) c.lineTo(x1, y1);
      else c.bezierCurveTo(x0, middle, x1, middle, x1, y1);
    }
  }

  paintNorms(c, edges) {
    c.font = `500 10.5px ${FONT}`;
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.lineWidth = 4;
    c.lineJoin = "round";
    c.strokeStyle = this.css("ground");
    c.fillStyle = this.css("gradient");
    for (const edge of edges) {
      if (edge.norm == null || edge.bottom - edge.top > 400 || (this.path && !this.isOnPath(edge))) continue;
      const half = Math.max(1, edge.points.length >> 1), [a, b] = [edge.points[half - 1], edge.points[half]];
      const text = edge.norm === Infinity ? "not finite" : number(edge.norm);
      c.strokeText(text, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
      c.fillText(text, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
    }
  }

  paintBox(c, box) {
    const { width: w, height: h } = box, x = box.x - w / 2, y = box.y - h / 2;
    const leaf = box.kind in LEAVES, radius = leaf ? h / 2 : 9;
    const onPath = !this.path || [...box.members, ...box.folded].some((n) => this.path.nodes.has(n.number));
    c.globalAlpha = onPath ? 1 : 0.32;
    if (this.scale < 0.18) {
      this.paintSpeck(c, box, x, y);
      return;
    }
    if (!box.single) this.card(c, x + 4, y + 4, w, h, radius, this.css("raised"), this.css("line"), 1);
    const chosen = this.selected === box.id;
    const rim = chosen ? this.css("blue") : box.severity === "error" ? this.css("red") : box.isTarget ? this.css("accent") : this.css("line");
    this.card(c, x, y, w, h, radius, this.fill(box), rim, chosen || box.severity === "error" || box.isTarget ? 2 : 1);
    c.fillStyle = this.familyColour(box);
    c.beginPath();
    if (leaf) c.arc(x + 14, box.y, 4, 0, 7);
    else c.roundRect(x + 7, y + 9, 3.5, h - 18, 2);
    c.fill();
    if (this.scale > 0.3) this.paintText(c, box, x + (leaf ? 24 : 18), y);
    if (box.severity) {
      c.fillStyle = this.css(box.severity === "error" ? "red" : "amber");
      c.beginPath();
      c.arc(x + w - 3, y + 3, 5.5, 0, 7);
      c.fill();
    }
    c.globalAlpha = 1;
  }

  // From afar: a spot of colour.
  paintSpeck(c, box, x, y) {
    const alarming = this.selected === box.id ? "blue" : box.severity === "error" ? "red" : "";
    c.fillStyle = alarming ? this.css(alarming) : this.speck(box);
    c.fillRect(x, y, box.width, box.height);
    c.globalAlpha = 1;
  }

  speck(box) { return this.colour === "kind" || this.value(box) == null ? this.familyColour(box) : this.fill(box); }

  paintText(c, box, x, y) {
    const hot = this.colour !== "kind" && this.value(box) != null;
    c.textAlign = "left";
    c.textBaseline = "alphabetic";
    c.font = `600 13px ${FONT}`;
    c.fillStyle = hot ? "#101828" : this.css("ink");
    c.fillText(box.shownTitle, x, y + 20);
    c.font = `400 11.5px ${FONT}`;
    c.fillStyle = hot ? "#344054" : this.css("soft");
    c.fillText(box.shownSubtitle, x, y + 36);
  }

  card(c, x, y, w, h, radius, fill, rim, width) {
    c.beginPath();
    c.roundRect(x, y, w, h, radius);
    c.fillStyle = fill;
    c.fill();
    c.strokeStyle = rim;
    c.lineWidth = Math.max(width, 0.6 / this.scale);
    c.stroke();
  }

  // Colours

  value(box) { return { kind: null, gradient: box.norm, time: box.seconds || null, memory: box.bytes || null }[this.colour]; }

  fill(box) {
    const value = this.value(box);
    if (this.colour === "kind" || value == null) return this.css("panel");
    return this.heat(value, { gradient: "norm", time: "seconds", memory: "bytes" }[this.colour], 0.62);
  }

  // A colour for a number on the logarithmic scale of its kind; lightened, so that text on it can be read.
  heat(value, kind, light = 0) {
    const [low, high] = this.scales[kind];
    const t = value === Infinity ? 1 : value > 0 ? (Math.log(value) - low) / (high - low || 1) : 0;
    return ramp(Math.min(1, Math.max(0, t)), light);
  }

  familyColour(box) {
    if (!box.family) {
      const name = box.single ? box.title : mostFrequent(box.members);
      const family = FAMILIES.find(([, pattern]) => pattern.test(name));
      box.family = box.kind in LEAVES ? LEAVES[box.kind][1] : family ? family[2] : ELEMENTWISE;
    }
    return box.family;
  }

  // The map in the corner

  mapping() {
    const { left, top, width, height } = this.bounds, { clientWidth: w, clientHeight: h } = this.map;
    const k = Math.min((w - 16) / (width + 1), (h - 16) / (height + 1));
    return { k, left: (w - width * k) / 2 - left * k, top: (h - height * k) / 2 - top * k };
  }

  paintMap() {
    const { map, ratio } = this, c = map.getContext("2d"), { k, left, top } = this.mapping();
    if (!map.clientWidth) return;
    if (!this.background || this.background.theme !== this.css("panel") + this.colour) this.paintBackground(k, left, top);
    map.width = map.clientWidth * ratio;
    map.height = map.clientHeight * ratio;
    c.drawImage(this.background, 0, 0);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    const [x0, y0] = this.toWorld(0, 0), [x1, y1] = this.toWorld(this.width, this.height);
    const clamp = (value, high) => Math.min(high - 1, Math.max(1, value));
    const l = clamp(x0 * k + left, map.clientWidth), t = clamp(y0 * k + top, map.clientHeight);
    const r = clamp(x1 * k + left, map.clientWidth), b = clamp(y1 * k + top, map.clientHeight);
    c.strokeStyle = this.css("accent");
    c.lineWidth = 1.5;
    c.strokeRect(l, t, Math.max(3, r - l), Math.max(3, b - t));
  }

  paintBackground(k, left, top) {
    const { map, ratio } = this;
    this.background = document.createElement("canvas");
    this.background.theme = this.css("panel") + this.colour;
    this.background.width = map.clientWidth * ratio;
    this.background.height = map.clientHeight * ratio;
    const c = this.background.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    for (const box of this.boxes) {
      c.fillStyle = this.speck(box);
      c.fillRect((box.x - box.width / 2) * k + left, (box.y - box.height / 2) * k + top, Math.max(1, box.width * k), Math.max(1, box.height * k));
    }
  }
}

function fitted(c, text, width) {
  text = text.slice(0, 120);
  if (c.measureText(text).width <= width) return text;
  while (text && c.measureText(`${text}…`).width > width) text = text.slice(0, -Math.ceil(text.length / 20));
  return `${text}…`;
}

function bounding(boxes) {
  let left = Infinity, top = Infinity, right = -Infinity, bottom = -Infinity;
  for (const b of boxes) {
    left = Math.min(left, b.x - b.width / 2);
    right = Math.max(right, b.x + b.width / 2);
    top = Math.min(top, b.y - b.height / 2);
    bottom = Math.max(bottom, b.y + b.height / 2);
  }
  return boxes.length ? { left, top, width: right - left, height: bottom - top } : { left: 0, top: 0, width: 1, height: 1 };
}

function scalesOf(boxes) {
  const scale = (name) => {
    const logs = boxes.map((b) => b[name]).filter((v) => v > 0 && v < Infinity).map(Math.log);
    return logs.length ? [logs.reduce((a, b) => Math.min(a, b)), logs.reduce((a, b) => Math.max(a, b))] : [0, 1];
  };
  return { norm: scale("norm"), seconds: scale("seconds"), bytes: scale("bytes") };
}

function ramp(t, light) {
  const place = t * (RAMP.length - 1), i = Math.min(RAMP.length - 2, Math.floor(place)), part = place - i;
  const mixed = RAMP[i].map((value, k) => Math.round((value + (RAMP[i + 1][k] - value) * part) * (1 - light) + 255 * light));
  return `rgb(${mixed.join(" ")})`;
}

function mostFrequent(nodes) {
  const counts = new Map();
  for (const node of nodes) counts.set(node.name, (counts.get(node.name) || 0) + 1);
  return [...counts].reduce((best, entry) => (entry[1] > best[1] ? entry : best))[0];
}
