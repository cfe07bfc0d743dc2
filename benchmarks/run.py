"""Measure gradtape against hand-written NumPy and its peers; print one table of ratios.

    python benchmarks/run.py                                  # everything this interpreter has
    python benchmarks/run.py --quick                          # a glance, in seconds; the numbers are rough
    python benchmarks/run.py --peer-python other/bin/python   # peers that live in other environments; may be repeated
    python benchmarks/run.py --json FILE --markdown           # for machines; for docs/performance.md
    python benchmarks/run.py --threads 1                      # for a machine that others use too
    python benchmarks/run.py --only keras,ops                 # some groups of rows

All contestants take turns within every round, in random order, so that a disturbance hits them alike; a ratio is that of
the medians. Where the rounds disagree too much, a row is marked noisy: repeat it on a quiet machine. Before anything is
timed, all contestants of a case must give the same numbers. Budgets are goals, not tests: the exit status says only
whether the run worked.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import keras_steps
import numpy as np
from contestants import OPS_PER_CALL, PEERS, with_gradtape, with_numpy
from timing import Here, There, Worker, import_samples, installed_peers, interleaved, ratio

CHAIN = 50
AGREEMENT = (  # case, how many calls, tolerance of what the last one gives
    ("tiny", 20, 1e-4),
    ("medium", 5, 1e-4),
    ("jacobian", 1, 1e-5),
    ("convolution", 1, 1e-2),  # sums of 32,768 products that reach 7,000: rounding is 1e-6 of that
    ("pipeline", 1, 0),
    ("scan", 1, 1e-4),
    ("gradient", 1, 1e-5),
    ("hvp", 1, 1e-4),
    ("per example", 1, 1e-5),
    ("one by one", 1, 1e-5),
    ("taylor", 1, 1e-3),  # JAX computes in single precision here
    ("nested tapes", 1, 1e-3),
)
NOISY = 1.5  # the middle half of the ratios spans more than this: neither kept nor broken
TRAINING_BUDGETS = {
    "tiny": {"NumPy by hand": 2.2, "PyTorch": 0.5, "TensorFlow": 0.05},
    "medium": {"NumPy by hand": 1.15},
}


@dataclass
class Row:
    """One line of the table; ``value`` is None if a contestant is missing."""

    measure: str
    value: float | None
    budget: float | None = None
    spread: tuple[float, float] | None = None
    detail: str = ""

    @property
    def mark(self) -> str:
        if self.value is None:
            return "skipped"
        if self.budget is None:
            return ""
        if self.spread is not None and self.spread[1] > NOISY * self.spread[0]:
            return "noisy"
        return "ok" if round(self.value, 2) <= self.budget else "OVER"


# What is measured


def training_rows(case: str, label: str, contestants: dict, options: Any) -> list[Row]:
    samples = interleaved(contestants, lambda _: case, options.rounds, options.sample)
    rows = []
    for peer in ["NumPy by hand", *PEERS]:
        spelled = {"JAX": "jax.jit by hand", "TensorFlow": "TensorFlow eager", "PyTorch": "PyTorch eager"}.get(peer, peer)
        rows.append(timed_row(f"{label} ÷ {spelled}", samples, "gradtape", peer, TRAINING_BUDGETS[case].get(peer)))
    return rows


def timed_row(measure: str, samples: dict, ours: str, theirs: str, budget: float | None, calls: int = 1) -> Row:
    if theirs not in samples:
        return Row(measure, None, budget, detail=f"{theirs} is not installed")
    value, low, high = ratio(samples[ours], samples[theirs])
    mine, other = (np.median(samples[name]) / calls for name in (ours, theirs))
    return Row(measure, value, budget, (low, high), f"{duration(mine)} ÷ {duration(other)}")


def op_rows(ours: Here, numpy: Here, options: Any) -> list[Row]:
    case = {"recorded": "recorded add", "traced": "traced add", "plain": "add", "after": "add after watch", "numpy": "add"}
    contestants = {name: numpy if name == "numpy" else ours for name in case}
    samples = interleaved(contestants, case.__getitem__, options.rounds, options.sample)
    return [
        timed_row("recorded op (add, 16×16) ÷ the NumPy call", samples, "recorded", "numpy", 4.2, OPS_PER_CALL),
        timed_row("the same on a tape that keeps every line ÷ the NumPy call", samples, "traced", "numpy", 4.5, OPS_PER_CALL),
        timed_row("the same with no tape active ÷ the NumPy call", samples, "plain", "numpy", 2.7, OPS_PER_CALL),
        timed_row("the same of tensors that an earlier tape watched", samples, "after", "numpy", 2.7, OPS_PER_CALL),
    ]


def jacobian_rows(contestants: dict, options: Any) -> list[Row]:
    chosen = {name: c for name, c in contestants.items() if "jacobian" in c.cases}
    samples = interleaved(chosen, lambda _: "jacobian", options.rounds, options.sample)
    label = "Jacobian 100 × 1000 of a two-layer net ÷ "
    return [
        timed_row(label + "jax.jit(jax.jacrev), warm", samples, "gradtape", "JAX", 3.0),
        timed_row(label + "NumPy by hand", samples, "gradtape", "NumPy by hand", None),
    ]


def convolution_rows(contestants: dict, options: Any) -> list[Row]:
    chosen = {name: c for name, c in contestants.items() if "convolution" in c.cases}
    samples = interleaved(chosen, lambda _: "convolution", max(20, options.rounds // 10), options.sample)
    label = "conv2d forward and backward (32 × 32×32×32 → 64, 3×3) ÷ TensorFlow eager"
    return [timed_row(label, samples, "gradtape", "TensorFlow", 3.0)]


def pipeline_row(contestants: dict, options: Any) -> Row:
    chosen = {name: c for name, c in contestants.items() if "pipeline" in c.cases}
    samples = interleaved(chosen, lambda _: "pipeline", max(5, options.rounds // 30), options.sample)
    label = "a pass over 60,000 × 784 floats, shuffled, in batches of 128 ÷ TensorFlow"
    return timed_row(label, samples, "gradtape", "TensorFlow", 1.0)


def scan_row(contestants: dict, options: Any) -> Row:
    chosen = {name: c for name, c in contestants.items() if "scan" in c.cases}
    samples = interleaved(chosen, lambda _: "scan", max(5, options.rounds // 30), options.sample)
    return timed_row("1000 steps of tf.scan with gradient ÷ TensorFlow eager", samples, "gradtape", "TensorFlow", 1.0)


DERIVATIVES = (  # measure, its case, the case that it is measured against, budget
    ("H·v of a network (256 × 32-64-64-1) ÷ its gradient", "hvp", "gradient", 4.0),
    ("gradients of 256 examples at once ÷ one by one", "per example", "one by one", 0.1),
    ("Taylor series of order 6 ÷ six nested tapes", "taylor", "nested tapes", 0.2),
    ("sparse Jacobian, n = 100,000, three a row ÷ one evaluation", "band", "rate", 20.0),
)


def derivative_rows(contestants: dict, options: Any) -> list[Row]:
    """Each derivative against a cheaper or a naive one of the same library: ours within a budget, JAX's beside it."""
    rows = []
    for measure, case, base, budget in DERIVATIVES:
        for name in ("gradtape", "JAX"):
            if name in contestants and case in contestants[name].cases:
                turns = {case: contestants[name], base: contestants[name]}
                samples = interleaved(turns, str, max(10, options.rounds // 10), options.sample)
                label, limit = (measure, budget) if name == "gradtape" else (f"the same in {name}", None)
                rows.append(timed_row(label, samples, case, base, limit))
    return rows


def keras_rows(workers: list[Worker], options: Any) -> list[Row]:
    """A step of a Keras model, by a loop with a tape: as it is written, and compiled.

    Keras has one backend per process, so each contestant has one: also gradtape, for two programs that are nearly the same
    would differ by what else a process has done.
    """
    own = {name: Worker(sys.executable, options.verbose) for name in ("gradtape", "Keras on JAX")}
    contestants: dict[str, Any] = {name: There(worker, name) for name, worker in own.items()}
    for worker in workers:
        if "TensorFlow" in worker.versions:
            contestants["Keras on TensorFlow"] = There(worker, "Keras on TensorFlow")
    for case in contestants["gradtape"].cases:
        expected = contestants["gradtape"].result(case, 5)
        for name, contestant in contestants.items():
            if name != "gradtape" and case in contestant.cases:
                np.testing.assert_allclose(contestant.result(case, 5), expected, rtol=1e-3, err_msg=f"{name}, {case}")
    rows = []
    for name in keras_steps.MODELS:
        for case, peer, spelled, budget in (
            (name, "Keras on TensorFlow", "TensorFlow eager", 0.5),
            (f"{name} compiled", "Keras on JAX", "Keras on JAX, compiled", 1.1),
            (f"{name} compiled", "Keras on TensorFlow", "tf.function", 1.0),
        ):
            chosen = {label: c for label, c in contestants.items() if label in ("gradtape", peer)}
            samples = interleaved(chosen, lambda _, case=case: case, max(20, options.rounds), options.sample)
            rows.append(timed_row(f"Keras {case.upper()[:3]} step{case[3:]} ÷ {spelled}", samples, "gradtape", peer, budget))
    for worker in own.values():
        worker.close()
    return rows


def memory_rows() -> list[Row]:
    """What a tape holds after a chain of tanh, whose rule reads its output alone: one array per layer."""
    import gradtape as tf

    x = tf.ones([512, 512])
    fewest = CHAIN * 512 * 512 * 4
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(CHAIN):
            y = tf.tanh(y)
    seen = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    held = kept_bytes(tape)
    label = f"bytes a tape holds for {CHAIN} elementwise layers ÷ fewest"
    return [
        Row(label, held / fewest, 1.0, detail=f"{held / 2**20:.1f} ÷ {fewest / 2**20:.1f} MiB, by its records"),
        Row("the same as the allocator sees it", seen / fewest, None, detail=f"{seen / 2**20:.1f} MiB, bookkeeping included"),
    ]


def kept_bytes(tape: Any) -> int:
    """The size of all distinct buffers that the records of a tape keep alive."""
    import gradtape as tf

    buffers: dict[int, int] = {}

    def visit(value: Any) -> None:
        if isinstance(value, tf.Tensor):
            array = np.asarray(value)
            while isinstance(array.base, np.ndarray):
                array = array.base
            buffers[id(array)] = array.nbytes
        elif isinstance(value, dict):
            visit(tuple(value.values()))
        elif isinstance(value, (tuple, list)):
            for item in value:
                visit(item)

    visit(tape.records)
    return sum(buffers.values())


def import_row(options: Any) -> Row:
    samples = import_samples(["numpy", "gradtape"], max(3, options.rounds // 10))
    return timed_row("import gradtape ÷ import numpy", samples, "gradtape", "numpy", 1.5)


# Who takes part


def gather(options: Any) -> tuple[dict[str, Any], dict[str, str], list[Worker]]:
    """Contestants, versions and workers; a peer found here is run here, else in the first worker that has it."""
    contestants: dict[str, Any] = {"gradtape": Here(with_gradtape()), "NumPy by hand": Here(with_numpy())}
    versions = {name: importlib.metadata.version(name) for name in ("gradtape", "numpy")}
    workers = [Worker(python, options.verbose) for python in options.peer_python]
    here = installed_peers()
    for peer, (_, cases) in PEERS.items():
        if peer in here:
            contestants[peer], versions[peer] = Here(cases()), here[peer]
            continue
        for worker in workers:
            if peer in worker.versions:
                contestants[peer], versions[peer] = There(worker, peer), worker.versions[peer]
                break
    return contestants, versions, workers


def check_agreement(contestants: dict[str, Any]) -> None:
    """All contestants give the same losses and Jacobians, or the comparison would mean nothing."""
    for case, calls, tolerance in AGREEMENT:
        reference = contestants["NumPy by hand" if case in contestants["NumPy by hand"].cases else "gradtape"]
        expected = reference.result(case, calls)
        for name, contestant in contestants.items():
            if contestant is reference or case not in contestant.cases:
                continue
            received = contestant.result(case, calls).reshape(expected.shape)
            np.testing.assert_allclose(received, expected, rtol=tolerance, atol=tolerance, err_msg=f"{name}, {case}")


def limit_threads(count: int) -> None:
    """Start over with the thread counts in the environment: libraries read them when they are loaded."""
    wanted = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), str(count))
    wanted |= dict.fromkeys(("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"), str(count))
    if count == 1:
        wanted["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.environ.update(wanted)
        os.execv(sys.executable, [sys.executable, *sys.argv])


# Telling it


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def machine(versions: dict[str, str]) -> dict[str, str]:
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0] if names else model
    threads = os.environ.get("OPENBLAS_NUM_THREADS")
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        "processor": f"{model}, {os.cpu_count()} cores seen" + (f", {threads} threads used" if threads else ""),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "load": f"{os.getloadavg()[0]:.1f} processes wanted to run, on average over the last minute",
        "BLAS": f"{blas.get('name')} {blas.get('version')}",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }


def as_cells(row: Row) -> tuple[str, str, str, str, str]:
    value = "–" if row.value is None else f"{row.value:.2f}" if row.value < 100 else f"{row.value:.0f}"
    if row.value is not None and row.value < 0.1:
        value = f"{row.value:.3f}"
    budget = "" if row.budget is None else f"≤ {row.budget:g}"
    detail = row.detail
    if row.spread is not None:
        detail += f"   [{row.spread[0]:.3g} to {row.spread[1]:.3g}]"
    return row.measure, value, budget, row.mark, detail


def as_text(rows: list[Row], described: dict[str, str]) -> str:
    head = ("measure", "ratio", "budget", "", "medians [middle half of the rounds' ratios]")
    cells = [head, *map(as_cells, rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(4)]
    lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}  {d:<{widths[3]}}  {e}".rstrip() for a, b, c, d, e in cells]
    lines.insert(1, "─" * max(map(len, lines)))
    return "\n".join([*lines, "", *(f"{key:<10} {value}" for key, value in described.items())])


def as_markdown(rows: list[Row], described: dict[str, str]) -> str:
    lines = ["| measure | ratio | budget | | medians [middle half] |", "|---|---:|---:|---|---|"]
    lines += ["| " + " | ".join(as_cells(row)) + " |" for row in rows]
    return "\n".join([*lines, "", *(f"- {key}: {value}" for key, value in described.items())])


GROUPS: dict[str, Callable[[dict, list[Worker], Any], list[Row]]] = {
    "tiny": lambda contestants, _, options: training_rows("tiny", "tiny step (8 × 4-16-16-1)", contestants, options),
    "medium": lambda contestants, _, options: training_rows("medium", "medium step (64 × 784-256-256-1)", contestants, options),
    "ops": lambda contestants, _, options: op_rows(contestants["gradtape"], contestants["NumPy by hand"], options),
    "jacobian": lambda contestants, _, options: jacobian_rows(contestants, options),
    "convolution": lambda contestants, _, options: convolution_rows(contestants, options),
    "data": lambda contestants, _, options: [pipeline_row(contestants, options)],
    "scan": lambda contestants, _, options: [scan_row(contestants, options)],
    "keras": lambda _, workers, options: keras_rows(workers, options),
    "derivatives": lambda contestants, _, options: derivative_rows(contestants, options),
    "memory": lambda *_: memory_rows(),
    "import": lambda contestants, workers, options: [import_row(options)],
}
"""What is measured, in the order of the table; by names for ``--only``."""


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few short rounds")
    parser.add_argument("--rounds", type=int, help="turns of each contestant (default 300, quick 40)")
    parser.add_argument("--peer-python", action="append", default=[], metavar="PATH", help="an interpreter that has peers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything to FILE")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--threads", type=int, metavar="N", help="limit every contestant to N threads")
    parser.add_argument("--verbose", action="store_true", help="show what workers print")
    parser.add_argument("--only", metavar="GROUPS", help=f"some of {', '.join(GROUPS)}, with commas between")
    options = parser.parse_args(arguments)
    if options.threads:
        limit_threads(options.threads)
    groups = options.only.split(",") if options.only else list(GROUPS)
    if unknown := set(groups) - set(GROUPS):
        parser.error(f"--only takes some of {', '.join(GROUPS)}, not {', '.join(sorted(unknown))}")
    options.rounds = options.rounds or (40 if options.quick else 300)
    options.sample = 0.001 if options.quick else 0.01

    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")  # every contestant on the CPU
    contestants, versions, workers = gather(options)
    try:
        check_agreement(contestants)
        rows = [row for group in groups for row in GROUPS[group](contestants, workers, options)]
    finally:
        for worker in workers:
            worker.close()
    described = machine(versions)
    print((as_markdown if options.markdown else as_text)(rows, described))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        content = {"machine": described, "rows": [{**asdict(row), "mark": row.mark} for row in rows]}
        options.json.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    return rows


if __name__ == "__main__":
    main()
