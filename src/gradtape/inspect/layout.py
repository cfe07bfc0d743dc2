"""Where to put the nodes of a graph: in layers, so that every edge points down and few of them cross.

The steps are Sugiyama's: layers by longest path, invisible stations where an edge passes a layer, order within a layer by the
mean place of the neighbours, and then coordinates. Those are a least-squares problem per layer: as near as possible to the
neighbours, no nearer than allowed to each other; pooling adjacent violators solves it exactly, in one pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

GAP, RISE = 26.0, 46.0  # between the boxes of a layer, and between layers
_LONG = 12  # an edge over more layers than this gets no stations: it would push everything apart
_SWEEPS = 10


@dataclass(slots=True)
class Layout:
    """Centres of the boxes, and for each edge the points of a chain of cubic curves (start, control, control, end, …)."""

    width: float
    height: float
    centres: list[tuple[float, float]]
    curves: list[list[tuple[float, float]]]


def layered(sizes: list[tuple[float, float]], edges: list[tuple[int, int]]) -> Layout:
    """Place boxes of the given sizes; an edge leads from a lower to a higher number."""
    if not sizes:
        return Layout(0.0, 0.0, [], [])
    layers = _layers(len(sizes), edges)
    widths = [w for w, _ in sizes]
    chains = _chains(edges, layers, widths)
    sides = _neighbours(layers, chains)
    rows = _ordered(layers, *sides)
    x = _coordinates(rows, sides, _ranks(len(layers), edges, chains), np.array(widths), len(sizes))
    y = _heights(rows, sizes)
    centres = [(float(x[i]), y[layers[i]]) for i in range(len(sizes))]
    curves = [_curve([(float(x[i]), y[layers[i]]) for i in chain], sizes[chain[0]][1], sizes[chain[-1]][1]) for chain in chains]
    right = max(cx + w / 2 for (cx, _), (w, _) in zip(centres, sizes))
    return Layout(right, y[-1] + max(sizes[i][1] for i in rows[-1] if i < len(sizes)) / 2, centres, curves)


def _layers(count: int, edges: list[tuple[int, int]]) -> list[int]:
    """By longest path from the top; then, from the bottom, what has no more inputs than readers moves to its first reader.

    Inputs that have none themselves do not count: they move along.
    """
    layers = [0] * count
    inputs: list[set[int]] = [set() for _ in range(count)]
    readers: list[set[int]] = [set() for _ in range(count)]
    for a, b in sorted(edges, key=lambda edge: edge[1]):
        layers[b] = max(layers[b], layers[a] + 1)
        inputs[b].add(a)
        readers[a].add(b)
    for i in reversed(range(count)):
        if readers[i] and sum(bool(inputs[a]) for a in inputs[i]) <= len(readers[i]):
            layers[i] = min(layers[b] for b in readers[i]) - 1
    return layers


def _chains(edges: list[tuple[int, int]], layers: list[int], widths: list[float]) -> list[list[int]]:
    """The stations of each edge; new ones are appended to ``layers`` and ``widths``."""
    chains = []
    for a, b in edges:
        chain = [a]
        if layers[b] - layers[a] <= _LONG:
            for layer in range(layers[a] + 1, layers[b]):
                chain.append(len(layers))
                layers.append(layer)
                widths.append(2.0)
        chains.append([*chain, b])
    return chains


def _ordered(layers: list[int], above: list[list[int]], below: list[list[int]]) -> list[list[int]]:
    """The nodes of each layer from left to right; of all orders met, the one with the fewest crossings."""
    rows: list[list[int]] = [[] for _ in range(max(layers) + 1)]
    for i, layer in enumerate(layers):
        rows[layer].append(i)
    best, fewest = [row[:] for row in rows], _crossings(rows, below)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            _sort_row(row, rows, layers, above if down else below, -1 if down else 1)
        crossings = _crossings(rows, below)
        if crossings < fewest:
            best, fewest = [row[:] for row in rows], crossings
    return best


def _neighbours(layers: list[int], chains: list[list[int]]) -> tuple[list[list[int]], list[list[int]]]:
    """The nodes above and below each; a long edge, which has no stations, makes no neighbours."""
    above: list[list[int]] = [[] for _ in layers]
    below: list[list[int]] = [[] for _ in layers]
    for chain in chains:
        for a, b in pairwise(chain):
            if layers[b] - layers[a] == 1:
                above[b].append(a)
                below[a].append(b)
    return above, below


def _sort_row(row: list[int], rows: list[list[int]], layers: list[int], neighbours: list[list[int]], step: int) -> None:
    """By the mean place of the neighbours in the next layer; a node without any keeps its place."""
    other = layers[row[0]] + step
    if not 0 <= other < len(rows):
        return
    places = {node: i for i, node in enumerate(rows[other])}
    scale = len(rows[other]) / len(row)
    means = {
        node: sum(places[n] for n in neighbours[node]) / len(neighbours[node]) if neighbours[node] else i * scale
        for i, node in enumerate(row)
    }
    row.sort(key=means.__getitem__)


def _crossings(rows: list[list[int]], below: list[list[int]]) -> int:
    total = 0
    for upper, lower in pairwise(rows):
        places = {node: i for i, node in enumerate(lower)}
        ends = np.array([p for node in upper for p in sorted(places[n] for n in below[node])], np.int64)
        if len(ends) > 1:
            total += int(np.triu(ends[:, None] > ends[None, :], 1).sum())
    return total


def _ranks(count: int, edges: list[tuple[int, int]], chains: list[list[int]]) -> tuple[list[int], list[int]]:
    """The longest path that ends in each node, and that begins in it; a station has those of the ends of its edge."""
    depth, reach = [0] * count, [0] * count
    for a, b in sorted(edges, key=lambda edge: edge[1]):
        depth[b] = max(depth[b], depth[a] + 1)
    for a, b in sorted(edges, reverse=True):
        reach[a] = max(reach[a], reach[b] + 1)
    for first, *stations, last in chains:
        for i in stations:
            depth[i], reach[i] = depth[first], reach[last]
    return depth, reach


def _foremost(neighbours: list[list[int]], rank: list[int]) -> list[list[int]]:
    """Of the neighbours of each node those on the longest path: what follows them stays straight, side branches give way."""
    return [[i for i in near if rank[i] == max(rank[k] for k in near)] for near in neighbours]


def _coordinates(
    rows: list[list[int]], sides: tuple[list[list[int]], ...], ranks: tuple[list[int], ...], widths: np.ndarray, real: int
) -> np.ndarray:
    """Sweeps down and up: every layer moves to where its neighbours are, as far as its order and the gaps allow.

    On the way down those above it count, on the way up those below: what has one neighbour ends up straight under or over it.
    """
    guides = [_foremost(side, rank) for side, rank in zip(sides, ranks)]
    lengths = np.add(ranks[0], ranks[1])
    # The heavier, the less a node gives way: the longest path and the stations of edges stay straight.
    weights = np.where(lengths == lengths.max(), 1e6, np.where(np.arange(len(widths)) < real, 1.0, 4.0))
    x = np.zeros(len(widths))
    for row in rows:
        x[row] = np.cumsum(widths[row] + GAP) - (widths[row] + GAP) / 2
        x[row] -= x[row].mean()
    for sweep in range(2 * _SWEEPS):
        neighbours = guides[sweep % 2]
        for row in reversed(rows) if sweep % 2 else rows:
            wished = np.array([np.median(x[neighbours[i]]) if neighbours[i] else x[i] for i in row])
            half = (widths[row] + GAP) / 2
            offsets = np.cumsum(np.concatenate([[0.0], half[:-1] + half[1:]]))
            x[row] = _increasing(wished - offsets, weights[row]) + offsets
    _pack(x, rows, widths, sides)
    return x - (x - widths / 2).min()


def _pack(x: np.ndarray, rows: list[list[int]], widths: np.ndarray, sides: tuple[list[list[int]], ...]) -> None:
    """Parts that no edge connects move together, as near as their boxes allow."""
    layers = {i: layer for layer, row in enumerate(rows) for i in row}
    reach: dict[int, float] = {}  # by layer: how far the parts on the left extend
    for part in sorted(_parts(sides), key=lambda nodes: (x - widths / 2)[nodes].min()):
        walls = [x[i] - widths[i] / 2 - reach[layers[i]] - GAP for i in part if layers[i] in reach]
        for i in part:
            x[i] -= min(walls, default=0.0)
        for i in part:
            reach[layers[i]] = max(reach.get(layers[i], x[i]), x[i] + widths[i] / 2)


def _parts(sides: tuple[list[list[int]], ...]) -> list[list[int]]:
    seen: set[int] = set()
    parts = []
    for start in range(len(sides[0])):
        if start not in seen:
            seen.add(start)
            parts.append([start])
            for node in parts[-1]:  # grows while it is walked
                new = {*sides[0][node], *sides[1][node]} - seen
                seen |= new
                parts[-1].extend(sorted(new))
    return parts


def _increasing(wished: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The non-decreasing sequence nearest to the wished one: where two neighbours disagree, they settle on their mean."""
    blocks: list[list[float]] = []  # mean, weight, length
    for value, weight in zip(wished, weights):
        blocks.append([value, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, total, length = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + mean * total) / (last[1] + total)
            last[1] += total
            last[2] += length
    return np.repeat([block[0] for block in blocks], [int(block[2]) for block in blocks])


def _heights(rows: list[list[int]], sizes: list[tuple[float, float]]) -> list[float]:
    found, top = [], 0.0
    for row in rows:
        height = max((sizes[i][1] for i in row if i < len(sizes)), default=0.0)
        found.append(top + height / 2)
        top += height + RISE
    return found


def _curve(stations: list[tuple[float, float]], start: float, end: float) -> list[tuple[float, float]]:
    """Cubic pieces that leave and reach every station vertically; the ends are at the rims of their boxes."""
    (ax, ay), (bx, by) = stations[0], stations[-1]
    points = [(ax, ay + start / 2), *stations[1:-1], (bx, by - end / 2)]
    curve = [points[0]]
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        curve += [(x0, middle), (x1, middle), (x1, y1)]
    return curve
