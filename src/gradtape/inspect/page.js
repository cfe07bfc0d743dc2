// The page: which tape is shown, how it is grouped and coloured, what is selected.

const GROUPS = LEVELS.map((text, level) => [level, text]);
const COLOURS = [["kind", "Kind"], ["gradient", "Gradient"], ["time", "Time"], ["memory", "Memory"]];

class App {
  constructor(data) {
    this.data = data;
    this.tapes = new Map();
    this.view = new View(byId("graph"), byId("map"));
    this.panels = new Panels(this);
    this.view.onSelect = (box) => this.select(box);
    this.view.onOpen = (box) => (box.single ? null : this.openGroup(box));
    this.setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    byId("theme").addEventListener("click", () => this.setTheme(this.theme === "dark" ? "light" : "dark"));
    byId("zoom-in").addEventListener("click", () => this.view.zoomAt(1.3));
    byId("zoom-out").addEventListener("click", () => this.view.zoomAt(1 / 1.3));
    byId("zoom-fit").addEventListener("click", () => this.view.fit());
    document.addEventListener("keydown", (event) => this.key(event));
    this.fillTapes();
    this.view.resize();
    this.showTape(0);
  }

  fillTapes() {
    const choice = byId("tape");
    choice.replaceChildren(...this.data.tapes.map((tape, i) => element("option", { value: i, text: tape.name })));
    choice.hidden = this.data.tapes.length < 2;
    choice.addEventListener("change", () => this.showTape(Number(choice.value)));
    byId("subtitle").textContent = this.data.subtitle;
  }

  showTape(index) {
    if (!this.tapes.has(index)) this.tapes.set(index, new Tape(this.data.tapes[index]));
    this.tape = this.tapes.get(index);
    this.view.path = this.view.selected = null;
    this.segments("group", GROUPS, this.tape.level, (level) => this.setLevel(level), (level) => level > 0 && !this.tape.isTraced);
    this.segments("colour", COLOURS, this.view.colour, (colour) => this.setColour(colour));
    this.panels.show(this.tape);
    this.view.show(this.tape);
    this.view.begin();
    this.legend();
  }

  segments(id, choices, current, onChoose, isOff = () => false) {
    byId(id).replaceChildren(...choices.map(([value, text]) => {
      const button = element("button", { text, "aria-pressed": String(value === current), "data-value": value, onClick: () => onChoose(value) });
      button.disabled = isOff(value);
      return button;
    }));
  }

  pressed(id, value) {
    for (const button of byId(id).children) button.setAttribute("aria-pressed", String(button.dataset.value === String(value)));
  }

  setLevel(level) {
    this.tape.level = level;
    this.tape.open.clear();
    this.pressed("group", level);
    this.deselect();
    this.view.show(this.tape);
    this.view.begin();
  }

  setColour(colour) {
    this.view.colour = colour;
    this.pressed("colour", colour);
    this.legend();
    this.view.draw();
  }

  setTheme(theme) {
    this.theme = document.documentElement.dataset.theme = theme;
    this.view.draw();
  }

  legend() {
    const swatch = (colour, text) => element("span", {}, element("i", { style: `background:${colour}` }), text);
    const { colour, scales } = this.view;
    if (colour === "kind") {
      const leaves = Object.entries(LEAVES).filter(([kind]) => this.tape.nodes.some((n) => n.kind === kind)).map(([, [text, c]]) => swatch(c, text));
      byId("legend").replaceChildren(...leaves, ...FAMILIES.map(([text, , c]) => swatch(c, text)), swatch(ELEMENTWISE, "Elementwise"));
      return;
    }
    const [low, high] = scales[{ gradient: "norm", time: "seconds", memory: "bytes" }[colour]].map(Math.exp);
    const text = { gradient: number, time: seconds, memory: (n) => bytes(Math.round(n)) }[colour];
    const strip = `background:linear-gradient(90deg,${[0, 1 / 3, 2 / 3, 1].map((t) => ramp(t, 0)).join(",")})`;
    byId("legend").replaceChildren(element("span", { text: text(low) }), element("i", { class: "ramp", style: strip }), element("span", { text: text(high) }));
  }

  // Selection

  select(box) {
    if (!box) { this.deselect(); return; }
    this.view.selected = box.id;
    this.panels.details(box);
    this.view.draw();
  }

  deselect() {
    this.view.selected = this.view.path = null;
    this.panels.press(-1);
    this.panels.pathResult("", "");
    byId("path-source").value = "";
    this.panels.overview();
    this.view.draw();
  }

  boxWith(number) { return this.view.boxes[this.tape.boxIndex[number]]; }

  // Bring an op on the screen, opening the groups that hide it.
  reveal(number) {
    const node = this.tape.nodes[number];
    if (!this.boxWith(number).single) {
      for (const n of node.kind === "op" ? [number] : this.tape.readers[number]) {
        for (const [id] of this.tape.groupsOf(this.tape.nodes[n])) this.tape.open.add(id);
      }
      this.view.show(this.tape);
    }
    const box = this.boxWith(number);
    this.select(box);
    this.view.focus(box);
  }

  // Groups that hold one group only are opened along with it.
  openGroup(box) {
    const [first] = box.members, { tape } = this;
    const inside = tape.groupsOf(first).filter(([, level]) => level <= box.level);
    for (const [id, level] of inside) {
      if (level < box.level && box.members.some((node) => tape.groupOf(node, level) !== tape.groupOf(first, level))) break;
      tape.open.add(id);
    }
    this.view.show(this.tape);
    this.select(this.boxWith(first.number));
    this.view.focus(this.boxWith(first.number));
  }

  close(group, node) {
    this.tape.open.delete(group);
    this.view.show(this.tape);
    this.select(this.boxWith(node.number));
    this.view.focus(this.boxWith(node.number));
  }

  showFinding(finding, index) {
    this.panels.press(index);
    this.view.path = null;
    if (finding.path) {
      [byId("path-source").value, byId("path-target").value] = finding.path;
      this.findPath();
    }
    if (finding.nodes.length) this.reveal(finding.nodes[0]);
  }

  findPath() {
    const source = byId("path-source").value, target = byId("path-target").value;
    this.view.path = null;
    if (source === "" || target === "") {
      this.panels.pathResult("", "");
    } else {
      const path = this.tape.path(Number(source), Number(target));
      this.view.path = path.connected ? path : { ...path, nodes: path.reached };
      this.tellPath(path, Number(source), Number(target));
    }
    this.view.draw();
  }

  tellPath(path, source, target) {
    const { nodes, broken } = this.tape, ops = [...path.nodes].filter((n) => nodes[n].kind === "op").length;
    if (path.connected) {
      this.panels.pathResult(`Connected, through ${count(ops, "op")}.`, "good");
      return;
    }
    const reason = (broken.find((b) => b.source === source && b.target === target) || {}).text;
    const ends = path.ends.filter((n) => n !== source).slice(0, 5).map((n) => label(nodes[n]));
    const where = ends.length ? `What depends on it ends at ${ends.join(", ")}.` : "No recorded op reads it.";
    this.panels.pathResult(`Broken. ${reason || `The target does not depend on this source. ${where}`}`, "bad");
  }

  key(event) {
    if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 80 / this.view.scale, move = (dx, dy) => this.view.moveTo(this.view.x + dx, this.view.y + dy, false);
    const action = {
      "+": () => this.view.zoomAt(1.3), "=": () => this.view.zoomAt(1.3), "-": () => this.view.zoomAt(1 / 1.3), f: () => this.view.fit(),
      "/": () => byId("search").focus(), Escape: () => this.deselect(), ArrowLeft: () => move(-step, 0), ArrowRight: () => move(step, 0),
      ArrowUp: () => move(0, -step), ArrowDown: () => move(0, step),
    }[event.key];
    if (action) { event.preventDefault(); action(); }
  }
}

window.gradtape = new App(JSON.parse(byId("data").textContent));
