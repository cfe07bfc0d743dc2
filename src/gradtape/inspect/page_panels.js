// The panels beside the canvas. Text reaches the page through textContent alone, so a name is never markup.

function element(tag, options = {}, ...children) {
  const { text, onClick, ...attributes } = options;
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  if (onClick) made.addEventListener("click", onClick);
  made.append(...children.filter(Boolean));
  return made;
}

const byId = (id) => document.getElementById(id);

function table(rows) {
  const shown = rows.filter((row) => row && row[1] != null && row[1] !== "");
  return element("table", {}, ...shown.map(([name, value, kind]) => element("tr", {},
    element("th", { text: name }), value instanceof Node ? element("td", {}, value) : element("td", { text: value, class: kind || "" }))));
}

function histogram(statistics, colour) {
  const { counts, low, high } = statistics, highest = Math.max(...counts), width = 300 / counts.length;
  const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  picture.setAttribute("class", "histogram");
  picture.setAttribute("viewBox", "0 0 300 74");
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `Histogram from ${number(low)} to ${number(high)}`);
  counts.forEach((n, i) => {
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const height = n ? Math.max(1.5, (70 * n) / highest) : 0;
    for (const [name, value] of Object.entries({ x: i * width, y: 74 - height, width: Math.max(1, width - 1.5), height, fill: colour })) {
      bar.setAttribute(name, value);
    }
    picture.append(bar);
  });
  return [picture, element("div", { class: "ends" }, element("span", { text: number(low) }), element("span", { text: number(high) }))];
}

function statisticsBlock(title, statistics, name) {
  if (!statistics) return [];
  const heading = element("h2", { "data-block": name }, element("i", { style: `background:var(--${name})` }), title);
  const percent = (part) => `${number(100 * part)} %`;
  const rows = [
    statistics.nans ? ["NaN", count(statistics.nans, "element"), "alarm"] : null,
    statistics.infinities ? ["infinite", count(statistics.infinities, "element"), "alarm"] : null,
    ["norm", number(statistics.norm)],
    ["mean ± deviation", `${number(statistics.mean)} ± ${number(statistics.deviation)}`],
    ["exactly zero", percent(statistics.zeros)],
  ];
  return [heading, ...(statistics.counts.length ? histogram(statistics, `var(--${name})`) : []), table(rows)];
}

class Panels {
  constructor(app) {
    this.app = app;
    byId("search").addEventListener("input", () => this.search());
    byId("path-source").addEventListener("change", () => app.findPath());
    byId("path-target").addEventListener("change", () => app.findPath());
  }

  show(tape) {
    this.tape = tape;
    this.findings();
    this.choices();
    byId("search").value = "";
    this.search();
    this.overview();
  }

  // Left

  findings() {
    const { findings } = this.tape;
    byId("finding-count").textContent = findings.length;
    const cards = findings.map((finding, i) => element("button", {
      class: `finding ${finding.severity}`, "data-kind": finding.kind, "aria-pressed": "false", onClick: () => this.app.showFinding(finding, i),
    }, element("i"), element("b", { text: finding.title }), element("span", { text: finding.text })));
    byId("findings").replaceChildren(...(cards.length ? cards : [element("div", { class: "empty", text: "Nothing stands out." })]));
  }

  press(index) {
    byId("findings").querySelectorAll(".finding").forEach((card, i) => card.setAttribute("aria-pressed", String(i === index)));
  }

  choices() {
    const { nodes, targets, sources, readers } = this.tape;
    const option = (n) => element("option", { value: n, text: label(nodes[n]) });
    const ends = targets.length ? targets : nodes.filter((n) => n.kind === "op" && !readers[n.number].length).map((n) => n.number);
    const leaves = sources.length ? sources : nodes.filter((n) => n.kind !== "op").map((n) => n.number);
    byId("path-source").replaceChildren(element("option", { value: "", text: "choose a source" }), ...leaves.slice(0, 2000).map(option));
    byId("path-target").replaceChildren(...ends.slice(-2000).reverse().map(option));
    byId("path-result").textContent = "";
  }

  pathResult(text, kind) {
    byId("path-result").textContent = text;
    byId("path-result").className = `note ${kind}`;
  }

  search() {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const { nodes, files } = this.tape;
    const hits = !words.length ? [] : nodes.filter((node) => {
      const text = `${node.name} ${node.attributes} ${node.file >= 0 ? `${files[node.file]}:${node.line}` : ""} ${described(node)}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const shown = hits.slice(0, 60).map((node) => this.hit(node));
    if (hits.length > 60) shown.push(element("div", { class: "empty", text: `and ${hits.length - 60} more` }));
    byId("results").replaceChildren(...shown);
  }

  hit(node) {
    const place = node.file >= 0 ? `${this.tape.files[node.file]}:${node.line}` : described(node);
    return element("button", { class: "hit", onClick: () => this.app.reveal(node.number) },
      element("b", { text: node.name }), element("span", { text: place }));
  }

  // Right

  overview() {
    const { tape } = this, ops = tape.nodes.filter((n) => n.kind === "op");
    const sum = (name) => ops.reduce((total, n) => total + (n[name] || 0), 0);
    const tile = (value, text) => element("div", { class: "tile" }, element("b", { text: value }), element("span", { text }));
    byId("right").replaceChildren(
      element("h1", { text: tape.name }),
      element("div", { class: "kind", text: tape.isTraced ? "a tape with trace" : "a tape without trace: no places, and only the values that its rules keep" }),
      element("div", { class: "tiles" },
        tile(ops.length.toLocaleString("en"), "ops"), tile(String(tape.nodes.filter((n) => n.kind === "variable").length), "variables"),
        tile(bytes(sum("bytes")), "kept for the gradient"), tile(seconds(sum("forward") + sum("backward") || null), "forward + backward")),
      ...this.ranking("Slowest ops", ops, (n) => (n.forward || 0) + (n.backward || 0), seconds),
      ...this.ranking("Most memory", ops, (n) => n.bytes, bytes),
      ...this.others(),
    );
  }

  ranking(title, ops, measure, shown) {
    const totals = new Map();
    for (const node of ops) {
      const name = node.file >= 0 ? `${node.name} · ${this.tape.files[node.file]}:${node.line}` : node.name;
      const entry = totals.get(name) || { name, total: 0, first: node };
      entry.total += measure(node);
      totals.set(name, entry);
    }
    const top = [...totals.values()].filter((e) => e.total > 0).sort((a, b) => b.total - a.total).slice(0, 5);
    if (!top.length) return [];
    return [element("h2", { text: title }), ...top.map((entry) => element("div", { class: "bar" },
      element("b", {}, element("button", { class: "link", text: entry.name, onClick: () => this.app.reveal(entry.first.number) })),
      element("span", { text: shown(entry.total) }),
      element("i", { style: `width:${(100 * entry.total) / top[0].total}%` })))];
  }

  others() {
    const { rest } = this.app.data;
    if (!rest.length) return [];
    return [element("h2", { text: "Tapes not shown" }), table(rest.map((row) => [row.name, row.text]))];
  }

  details(box) {
    const parts = box.single ? this.node(box.members[0]) : this.group(box);
    byId("right").replaceChildren(...parts);
    byId("right").scrollTop = 0;
  }

  code(node) {
    if (node.file < 0) return null;
    const where = `${this.tape.paths[node.file]}:${node.line}${node.fn >= 0 ? `, in ${this.tape.functions[node.fn]}` : ""}`;
    const text = this.tape.codeAt(node);
    return element("div", { class: "code" }, text ? element("code", { text }) : null, element("span", { text: where }));
  }

  node(node) {
    const { tape } = this, [first] = node.outputs;
    const link = (n) => element("button", { class: "link", text: `${label(tape.nodes[n])}  ${described(tape.nodes[n])}`, onClick: () => this.app.reveal(n) });
    const links = (numbers) => element("div", {}, ...[...new Set(numbers)].slice(0, 12).map((n) => element("div", {}, link(n))));
    const readers = tape.readers[node.number];
    return [
      element("h1", { text: node.name }), element("div", { class: "kind", text: [kindText(node), node.attributes].filter(Boolean).join(" · ") }),
      this.code(node), this.actions(node),
      element("h2", { text: "Op" }),
      table([
        ...node.outputs.map((o, i) => [node.outputs.length > 1 ? `output ${i}` : "shape", `${o.shape.join(" × ") || "scalar"}  ${o.dtype}`]),
        ["reads", node.inputs.length ? links(node.inputs.map(([s]) => s)) : null],
        ["read by", readers.length ? links(readers) : null],
        ["module", node.module >= 0 ? tape.modules[node.module] : null],
        ["memory", node.kind === "op" ? bytes(node.bytes) : null],
        ["forward", node.forward != null ? seconds(node.forward) : null],
        ["backward", node.backward != null ? seconds(node.backward) : null],
        first && first.dead ? ["dead units", `${number(100 * first.dead)} %`, "alarm"] : null,
      ]),
      ...node.outputs.slice(0, 4).flatMap((o, i) => {
        const which = node.outputs.length > 1 ? ` of output ${i}` : "";
        return [...statisticsBlock(`Value${which}`, o.value, "value"), ...statisticsBlock(`Gradient${which}`, o.gradient, "gradient")];
      }),
      first && !first.value ? element("p", { class: "empty", text: "The value was not kept. GradientTape(trace=True) keeps all of them." }) : null,
      first && !first.gradient ? element("p", { class: "empty", text: "No gradient arrives here from the target, or none was asked for." }) : null,
    ].filter(Boolean);
  }

  actions(node) {
    const { tape, app } = this, buttons = [];
    for (const [id, level] of tape.groupsOf(node)) {
      if (tape.open.has(id)) {
        const text = `Close ${tape.groupName(node, level)}`.slice(0, 60);
        buttons.push(element("button", { text, onClick: () => app.close(id, node) }));
      }
    }
    return buttons.length ? element("div", { class: "actions" }, ...buttons) : null;
  }

  group(box) {
    const [first] = box.members, counts = new Map();
    for (const node of box.members) counts.set(node.name, (counts.get(node.name) || 0) + 1);
    return [
      element("h1", { text: box.title }), element("div", { class: "kind", text: `${WORDS[box.level]} with ${count(box.members.length, "op")}` }),
      box.level === 1 ? this.code(first) : null,
      element("div", { class: "actions" }, element("button", { id: "open-group", text: "Open", onClick: () => this.app.openGroup(box) })),
      element("h2", { text: "Together" }),
      table([["memory", bytes(box.bytes)], ["time", box.seconds ? seconds(box.seconds) : null], ["largest gradient", box.norm != null ? number(box.norm) : null]]),
      element("h2", { text: "Ops" }),
      table([...counts].sort((a, b) => b[1] - a[1]).slice(0, 30).map(([name, n]) => [name, `× ${n}`])),
      ...this.ranking("Slowest ops", box.members, (n) => (n.forward || 0) + (n.backward || 0), seconds),
    ].filter(Boolean);
  }
}

function kindText(node) {
  return { op: `op ${node.number}`, variable: "trainable variable", watched: "watched tensor", constant: "constant" }[node.kind];
}

function label(node) {
  const name = node.name.length > 60 ? `${node.name.slice(0, 59)}…` : node.name;
  return node.kind === "variable" ? name : `${name} (${node.number})`;
}
