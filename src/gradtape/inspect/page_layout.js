// Where to put the boxes: the algorithm of layout.py, which says why. Here too, because groups open and close in the browser.

const GAP = 22, RISE = 44, LONG = 12, SWEEPS = 6;

// boxes: [{width, height}] in order of time; edges: [[from, to]], those that point back in time are turned round.
function layered(boxes, edges) {
  const count = boxes.length;
  const forward = edges.map(([a, b]) => (a < b ? [a, b] : [b, a]));
  const layers = layersOf(count, forward);
  const widths = boxes.map((box) => box.width);
  const chains = forward.map(([a, b]) => {
    const chain = [a];
    if (layers[b] - layers[a] <= LONG) {
      for (let layer = layers[a] + 1; layer < layers[b]; layer++) {
        chain.push(layers.length);
        layers.push(layer);
        widths.push(2);
      }
    }
    chain.push(b);
    return chain;
  });
  const above = layers.map(() => []), below = layers.map(() => []);
  for (const chain of chains) {
    for (let i = 1; i < chain.length; i++) {
      if (layers[chain[i]] - layers[chain[i - 1]] > 1) continue; // a long edge places nothing
      above[chain[i]].push(chain[i - 1]);
      below[chain[i - 1]].push(chain[i]);
    }
  }
  const rows = Array.from({ length: maxOf(layers) + 1 }, () => []);
  layers.forEach((layer, i) => rows[layer].push(i));
  orderRows(rows, layers, above, below);
  const [depth, reach] = ranks(count, forward, chains, layers.length);
  const longest = maxOf(depth);
  const weights = layers.map((_, i) => (depth[i] + reach[i] === longest ? 1e6 : i < count ? 1 : 4));
  const x = coordinates(rows, widths, foremost(above, depth), foremost(below, reach), weights);
  pack(x, rows, widths, above, below);
  const y = heights(rows, boxes);
  return {
    centres: boxes.map((_, i) => [x[i], y[layers[i]]]),
    chains: chains.map((chain) => chain.slice(1, -1).map((i) => [x[i], y[layers[i]]])),
  };
}

function maxOf(values) {
  let found = -1;
  for (const value of values) if (value > found) found = value;
  return found;
}

function layersOf(count, edges) {
  const layers = new Array(count).fill(0);
  const inputs = layers.map(() => new Set()), readers = layers.map(() => new Set());
  for (const [a, b] of [...edges].sort((p, q) => p[1] - q[1])) {
    layers[b] = Math.max(layers[b], layers[a] + 1);
    inputs[b].add(a);
    readers[a].add(b);
  }
  for (let i = count - 1; i >= 0; i--) {
    const computed = [...inputs[i]].filter((a) => inputs[a].size).length;
    if (readers[i].size && computed <= readers[i].size) {
      let first = Infinity;
      for (const b of readers[i]) first = Math.min(first, layers[b]);
      layers[i] = first - 1;
    }
  }
  return layers;
}

// The longest path that ends in each node, and that begins in it; a station has those of the ends of its edge.
function ranks(count, edges, chains, total) {
  const depth = new Array(total).fill(0), reach = new Array(total).fill(0);
  const sorted = [...edges].sort((p, q) => p[1] - q[1]);
  for (const [a, b] of sorted) depth[b] = Math.max(depth[b], depth[a] + 1);
  for (const [a, b] of sorted.sort((p, q) => q[0] - p[0])) reach[a] = Math.max(reach[a], reach[b] + 1);
  for (const chain of chains) {
    for (const i of chain.slice(1, -1)) {
      depth[i] = depth[chain[0]];
      reach[i] = reach[chain[chain.length - 1]];
    }
  }
  return [depth, reach];
}

// Of the neighbours of each node those on the longest path: what follows them stays straight, and side branches give way.
function foremost(neighbours, rank) {
  return neighbours.map((near) => {
    const most = near.reduce((best, i) => Math.max(best, rank[i]), 0);
    return near.filter((i) => rank[i] === most);
  });
}

function orderRows(rows, layers, above, below) {
  const place = new Array(layers.length).fill(0);
  const number = (row) => row.forEach((node, i) => { place[node] = i; });
  rows.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0, neighbours = down ? above : below;
    for (let k = 0; k < rows.length; k++) {
      const row = rows[down ? k : rows.length - 1 - k];
      if (row.length < 2) continue;
      const mean = new Map();
      for (const node of row) {
        const near = neighbours[node];
        mean.set(node, near.length ? near.reduce((sum, n) => sum + place[n], 0) / near.length : place[node]);
      }
      row.sort((a, b) => mean.get(a) - mean.get(b) || place[a] - place[b]);
      number(row);
    }
  }
}

// The heavier, the less a node gives way: the longest path and the stations of edges stay straight.
function coordinates(rows, widths, above, below, weights) {
  const x = new Float64Array(widths.length);
  for (const row of rows) {
    let right = 0;
    for (const i of row) { x[i] = right + widths[i] / 2; right += widths[i] + GAP; }
    for (const i of row) x[i] -= right / 2;
  }
  for (let sweep = 0; sweep < 2 * SWEEPS; sweep++) {
    const neighbours = sweep % 2 ? below : above;
    for (let k = 0; k < rows.length; k++) settle(rows[sweep % 2 ? rows.length - 1 - k : k], x, widths, neighbours, weights);
  }
  return x;
}

// The places nearest to the medians of the neighbours that keep order and gaps: pooling adjacent violators.
function settle(row, x, widths, neighbours, weights) {
  const blocks = [];
  let offset = 0;
  row.forEach((node, i) => {
    if (i) offset += (widths[row[i - 1]] + widths[node]) / 2 + GAP;
    let mean = (neighbours[node].length ? median(neighbours[node].map((n) => x[n])) : x[node]) - offset;
    let weight = weights[node], length = 1;
    while (blocks.length && blocks[blocks.length - 1].mean > mean) {
      const last = blocks.pop();
      mean = (last.mean * last.weight + mean * weight) / (last.weight + weight);
      weight += last.weight;
      length += last.length;
    }
    blocks.push({ mean, weight, length });
  });
  let i = 0;
  offset = 0;
  for (const block of blocks) {
    for (let k = 0; k < block.length; k++, i++) {
      if (i) offset += (widths[row[i - 1]] + widths[row[i]]) / 2 + GAP;
      x[row[i]] = block.mean + offset;
    }
  }
}

// Parts that no edge connects move together, as near as their boxes allow.
function pack(x, rows, widths, above, below) {
  const parts = partsOf(above, below), right = new Map(); // by layer: how far the parts on the left reach
  const left = parts.map((nodes) => nodes.reduce((least, i) => Math.min(least, x[i] - widths[i] / 2), Infinity));
  const layerOf = [];
  rows.forEach((row, layer) => row.forEach((i) => { layerOf[i] = layer; }));
  for (const index of left.map((_, i) => i).sort((a, b) => left[a] - left[b])) {
    const nodes = parts[index];
    let shift = Infinity;
    for (const i of nodes) {
      const wall = right.has(layerOf[i]) ? right.get(layerOf[i]) + GAP : -Infinity;
      shift = Math.min(shift, x[i] - widths[i] / 2 - wall);
    }
    if (shift === Infinity) shift = left[index] - Math.min(...right.values(), left[index]);
    for (const i of nodes) {
      x[i] -= shift;
      right.set(layerOf[i], Math.max(right.get(layerOf[i]) ?? -Infinity, x[i] + widths[i] / 2));
    }
  }
}

function partsOf(above, below) {
  const seen = new Array(above.length).fill(false), parts = [];
  for (let start = 0; start < above.length; start++) {
    if (seen[start]) continue;
    const nodes = [start];
    seen[start] = true;
    for (let k = 0; k < nodes.length; k++) {
      for (const next of [...above[nodes[k]], ...below[nodes[k]]]) {
        if (!seen[next]) { seen[next] = true; nodes.push(next); }
      }
    }
    parts.push(nodes);
  }
  return parts;
}

function median(values) {
  values.sort((a, b) => a - b);
  const half = values.length >> 1;
  return values.length % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

function heights(rows, boxes) {
  let top = 0;
  return rows.map((row) => {
    let height = 0;
    for (const i of row) if (i < boxes.length) height = Math.max(height, boxes[i].height);
    const centre = top + height / 2;
    top += height + RISE;
    return centre;
  });
}
