"""Taking turns: contestants in this process or in a worker are sampled one after the other, round by round."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from contestants import PEERS, Cases


class Here:
    """Contestants of this process."""

    def __init__(self, cases: Cases) -> None:
        self.cases = cases

    def result(self, case: str, calls: int) -> np.ndarray:
        """What the last of ``calls`` calls gives."""
        for _ in range(calls - 1):
            self.cases[case]()
        return np.asarray(self.cases[case]())

    def seconds(self, case: str, calls: int) -> float:
        """Seconds per call, after one call that is not counted: the contestant before left the caches to itself."""
        function = self.cases[case]
        function()
        start = perf_counter()
        for _ in range(calls):
            function()
        return (perf_counter() - start) / calls


class There:
    """A contestant in another interpreter: `worker.py` over a pipe. Only one of the two works at a time."""

    def __init__(self, worker: Worker, peer: str) -> None:
        self.worker, self.peer = worker, peer
        self.cases = dict.fromkeys(worker.ask(do="load", peer=peer))

    def result(self, case: str, calls: int) -> np.ndarray:
        return np.asarray(self.worker.ask(do="result", peer=self.peer, case=case, calls=calls))

    def seconds(self, case: str, calls: int) -> float:
        return self.worker.ask(do="seconds", peer=self.peer, case=case, calls=calls)


class Worker:
    """A Python process that answers requests, one line of JSON each."""

    def __init__(self, python: str, verbose: bool) -> None:
        self.process = subprocess.Popen(
            [python, str(Path(__file__).with_name("worker.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None if verbose else subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.versions: dict[str, str] = self.ask(do="versions")

    def ask(self, **request: Any) -> Any:
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker {self.process.args!r} died on {request}; run with --verbose to see why")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{request}: {answer['error']}")
        return answer["value"]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=30)


def installed_peers() -> dict[str, str]:
    """Peer → version, for those this interpreter could import."""
    found, packages = {}, importlib.metadata.packages_distributions()
    for peer, (module, _) in PEERS.items():
        if importlib.util.find_spec(module) is not None:
            found[peer] = importlib.metadata.version(packages.get(module, [module])[0])  # tensorflow is in tensorflow-cpu, too
    return found


def interleaved(contestants: dict, case_of: Callable[[str], str], rounds: int, sample_s: float) -> dict[str, list[float]]:
    """Samples of seconds per call: in every round each contestant gets one turn of about ``sample_s``.

    The order of the turns is drawn anew in every round. Otherwise, on a busy machine, the rhythm of the rounds
    falls into step with the scheduler's, and always the same contestant is interrupted.
    """
    rng = random.Random(0)
    calls = {}
    for name, contestant in contestants.items():
        # The fastest of several: a stalled trial would give so few calls that every later sample is noise.
        fastest = min(contestant.seconds(case_of(name), 3) for _ in range(10))
        calls[name] = max(1, round(sample_s / fastest))
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name in rng.sample(list(contestants), len(contestants)):
            samples[name].append(contestants[name].seconds(case_of(name), calls[name]))
    return samples


def import_samples(modules: list[str], rounds: int) -> dict[str, list[float]]:
    """Seconds that ``import module`` takes in a fresh interpreter, the modules alternating."""
    code = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"
    samples: dict[str, list[float]] = {module: [] for module in modules}
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}  # users have compiled modules
    for _ in range(rounds + 1):
        for module in modules:
            command = [sys.executable, "-c", code.format(module)]
            run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
            samples[module].append(float(run.stdout))
    return {module: values[1:] for module, values in samples.items()}  # the first round warms the disk cache


def ratio(numerator: list[float], denominator: list[float]) -> tuple[float, float, float]:
    """The ratio of medians, and the quartiles of the ratios of the rounds."""
    low, high = np.percentile(np.divide(numerator, denominator), [25, 75])
    return median(numerator) / median(denominator), float(low), float(high)
