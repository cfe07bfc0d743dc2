// What the page shows: nodes as the tape has them, and the boxes and edges that are left when groups are closed.

const LEVELS = ["Ops", "Lines", "Functions", "Modules", "Files"];
const WORDS = ["op", "line", "function", "module", "file"];
const CROWDED = 250; // boxes: with more of them a tape opens grouped

class Tape {
  constructor(raw) {
    Object.assign(this, raw);
    this.nodes = raw.nodes.map((row, number) => this.node(row, number));
    this.readers = this.nodes.map(() => []);
    for (const node of this.nodes) for (const [source] of node.inputs) this.readers[source].push(node.number);
    this.found = this.nodes.map(() => "");
    for (const finding of this.findings) {
      if (finding.severity === "information") continue;
      for (const n of finding.nodes) if (this.found[n] !== "error") this.found[n] = finding.severity;
    }
    this.isTraced = this.nodes.some((node) => node.file >= 0);
    this.level = this.nodes.length > CROWDED && this.isTraced ? this.bestLevel() : 0;
    this.open = new Set();
  }

  node([kind, name, inputs, outputs, attributes, bytes, forward, backward, file, line, fn, module], number) {
    const results = outputs.map(([shape, dtype, value, gradient, dead]) => (
      { shape, dtype, value: statistics(value), gradient: statistics(gradient), dead }));
    return { number, kind, name, inputs, outputs: results, attributes, bytes, file, line, fn, module, forward, backward };
  }

  // Modules keep the order in which values flow; else the finest level that is not crowded.
  bestLevel() {
    const count = (level) => new Set(this.nodes.map((node) => this.groupOf(node, level))).size;
    if (this.modules.length > 2 && count(3) <= CROWDED) return 3;
    return [1, 2].find((level) => count(level) <= CROWDED) || 4;
  }

  groupOf(node, level) {
    if (node.file < 0 || node.kind !== "op" || level === 0) return `op ${node.number}`;
    if (level === 3 && node.module < 0) return this.groupOf(node, 2);
    return ["", `line ${node.file}:${node.line}`, `function ${node.file}:${node.fn}`, `module ${node.module}`, `file ${node.file}`][level];
  }

  groupName(node, level) {
    if (level === 3 && node.module < 0) return this.groupName(node, 2);
    const file = this.files[node.file];
    return ["", `${file}:${node.line}`, this.functions[node.fn], this.modules[node.module], file][level];
  }

  // The groups that a node is in, from the coarsest in use to the finest, each named with those around it.
  groupsOf(node) {
    const found = [];
    let id = "";
    for (let { level } = this; level > 0; level--) {
      id += `/${this.groupOf(node, level)}`;
      found.push([id, level]);
    }
    return found;
  }

  // The box that shows a node: its outermost group that is closed, or itself.
  boxOf(node) { return this.groupsOf(node).find(([id]) => !this.open.has(id)) || [`op ${node.number}`, 0]; }

  boxes() {
    const byId = new Map(), idOf = [];
    for (const node of this.nodes) {
      const [id, level] = this.boxOf(node);
      idOf.push(id);
      if (!byId.has(id)) byId.set(id, { id, level, members: [], folded: [] });
      byId.get(id).members.push(node);
    }
    this.fold(byId, idOf);
    const boxes = this.inOrder(byId, idOf).map((box, i) => Object.assign(box, this.described(box), { index: i }));
    const index = new Map(boxes.map((box) => [box.id, box.index]));
    this.boxIndex = idOf.map((id) => index.get(id));
    return boxes;
  }

  // By the time of the first op; a leaf comes before the first box that reads it, which may be a group that began earlier.
  inOrder(byId, idOf) {
    const time = (box) => box.members[0].number;
    for (const box of byId.values()) {
      const [first] = box.members;
      box.time = time(box);
      if (first.kind !== "op") {
        for (const reader of this.readers[first.number]) box.time = Math.min(box.time, time(byId.get(idOf[reader])) - 0.5);
      }
    }
    return [...byId.values()].sort((a, b) => a.time - b.time);
  }

  // A leaf that only one closed group reads is shown as part of it.
  fold(byId, idOf) {
    for (const node of this.nodes) {
      if (node.kind === "op" || !this.readers[node.number].length) continue;
      const homes = new Set(this.readers[node.number].map((n) => idOf[n]));
      const home = byId.get([...homes][0]);
      if (homes.size === 1 && home.level > 0 && home.members.length > 1) {
        byId.delete(idOf[node.number]);
        idOf[node.number] = home.id;
        home.folded.push(node);
      }
    }
  }

  described(box) {
    const all = [...box.members, ...box.folded], [first] = box.members;
    const sum = (name) => all.reduce((total, node) => total + (node[name] || 0), 0);
    const norms = all.flatMap((node) => node.outputs.map((o) => o.gradient && o.gradient.norm)).filter((n) => n != null);
    const single = box.members.length === 1 && !box.folded.length;
    if (single) box.level = 0;
    return {
      single, bytes: sum("bytes"), seconds: sum("forward") + sum("backward"), norm: norms.length ? Math.max(...norms) : null,
      kind: single ? first.kind : "group", title: single ? first.name : this.groupName(first, box.level),
      subtitle: single ? described(first) : this.groupText(box),
      severity: all.reduce((worst, node) => (worst === "error" ? worst : this.found[node.number] || worst), ""),
      isTarget: all.some((node) => this.targets.includes(node.number)),
    };
  }

  groupText(box) {
    const code = box.level === 1 ? this.codeAt(box.members[0]) : "";
    const text = `${count(box.members.length, "op")}${box.folded.length ? `, ${count(box.folded.length, "leaf", "leaves")}` : ""}`;
    return code ? `${text} · ${code}` : text;
  }

  codeAt(node) { return this.lines[`${node.file}:${node.line}`] || ""; }

  edges() {
    const found = new Map();
    for (const node of this.nodes) {
      for (const [source, output] of node.inputs) {
        const a = this.boxIndex[source], b = this.boxIndex[node.number];
        if (a === b) continue;
        const id = a * 1048576 + b, gradient = this.nodes[source].outputs[output].gradient;
        if (!found.has(id)) found.set(id, { from: a, to: b, norm: null, ends: [] });
        const edge = found.get(id);
        edge.ends.push([source, node.number]);
        if (gradient) edge.norm = Math.max(edge.norm || 0, gradient.nonfinite ? Infinity : gradient.norm);
      }
    }
    return [...found.values()];
  }

  // Everything that depends on a node (forward) or that it depends on.
  reach(start, forward) {
    const found = new Set([start]), pending = [start];
    while (pending.length) {
      const number = pending.pop();
      for (const next of forward ? this.readers[number] : this.nodes[number].inputs.map(([s]) => s)) {
        if (!found.has(next)) { found.add(next); pending.push(next); }
      }
    }
    return found;
  }

  path(source, target) {
    const from = this.reach(source, true), to = this.reach(target, false);
    const nodes = new Set([...from].filter((n) => to.has(n)));
    const ends = [...from].filter((n) => !this.readers[n].some((r) => from.has(r)));
    return { nodes, connected: nodes.has(source) && nodes.has(target), reached: from, ends };
  }
}

function statistics(row) {
  if (!row) return null;
  const [size, low, high, mean, deviation, norm, zeros, nans, infinities, counts] = row;
  return { size, low, high, mean, deviation, norm, zeros, nans, infinities, counts, nonfinite: nans + infinities };
}

function described(node) {
  const [first] = node.outputs;
  return first ? `${first.shape.join("×") || "scalar"} ${first.dtype}${node.outputs.length > 1 ? " …" : ""}` : "";
}

function count(n, one, many = `${one}s`) { return `${n.toLocaleString("en")} ${n === 1 ? one : many}`; }

function bytes(n) {
  if (n < 1024) return `${n} B`;
  const power = Math.min(4, Math.floor(Math.log(n) / Math.log(1024)));
  return `${(n / 1024 ** power).toPrecision(3)} ${["", "KiB", "MiB", "GiB", "TiB"][power]}`;
}

function seconds(s) {
  if (s == null) return "–";
  if (s < 1e-3) return `${(s * 1e6).toPrecision(3)} µs`;
  return s < 1 ? `${(s * 1e3).toPrecision(3)} ms` : `${s.toPrecision(3)} s`;
}

function number(x) {
  if (x == null) return "–";
  if (x === 0) return "0";
  const size = Math.abs(x);
  return size >= 1e5 || size < 1e-3 ? x.toExponential(2) : String(Number(x.toPrecision(4)));
}
