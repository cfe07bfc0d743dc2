"""Runs the test suite of Keras, which its wheel contains, on our backend.

    python tools/keras_suite.py                                         # all of it: ten minutes on two cores
    python tools/keras_suite.py keras/src/ops/nn_test.py -k relu -x     # paths inside Keras, and any options of pytest
    python tools/keras_suite.py --on jax keras/src/ops/nn_test.py       # the same tests on Keras's own jax backend
    python tools/keras_suite.py --as-tensorflow                         # with the modules that import TensorFlow: they get us
    python tools/keras_suite.py --sample 0.01 --part 1/4                # some tests, the same every time
    python tools/keras_suite.py --record-jax                            # which tests pass on jax: what we are measured by

Every outcome goes to a file, skips with their reasons; for the whole suite to out/keras_suite.tsv. The end compares with
tests/keras_suite: passing_on_jax.txt.gz has the tests that pass on jax, known_failures.txt those that fail here, and why. The
exit status is 1 if there is any other failure, or, for the whole suite, if fewer than 97 % of the tests that pass on jax and
need neither TensorFlow nor sparse tensors pass here; it was 99.32 % of 11,525 at the last complete run (docs/keras_suite.md).
"""

from __future__ import annotations

import argparse
import gzip
import importlib.metadata
import importlib.util
import os
import re
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "keras_suite"
PASSING_ON_JAX = FOLDER / "passing_on_jax.txt.gz"
KNOWN_FAILURES = FOLDER / "known_failures.txt"
REQUIRED = 0.97


def site_packages() -> Path:
    """The folder that Keras is installed in: test ids start there."""
    found = importlib.util.find_spec("keras")
    if found is None or found.origin is None:
        sys.exit("Keras is not installed: pip install 'gradtape[keras]'")
    return Path(found.origin).parent.parent


def passing_on_jax() -> list[str]:
    lines = gzip.decompress(PASSING_ON_JAX.read_bytes()).decode().splitlines()
    return [line for line in lines if not line.startswith("#")]


def record_passing_on_jax(outcomes: Iterable[Outcome]) -> None:
    versions = " ".join(f"{name} {importlib.metadata.version(name)}" for name in ("keras", "jax", "numpy"))
    passed = sorted(outcome.test for outcome in outcomes if outcome.result == "passed")
    text = "\n".join([f"# tests that pass on Keras's jax backend: {versions}", *passed, ""])
    PASSING_ON_JAX.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(passed)} tests pass on jax: {PASSING_ON_JAX}")


def known_failures() -> dict[str, re.Pattern[str]]:
    """What each line of the file stands for: a test id, in which * is any text, two spaces or more, the reason."""
    lines = [line for line in KNOWN_FAILURES.read_text().splitlines() if line and not line.startswith("#")]
    patterns = [re.split(r"\s{2,}", line, maxsplit=1)[0] for line in lines]
    return {pattern: re.compile(re.escape(pattern).replace(r"\*", ".*")) for pattern in patterns}


def sample(tests: Iterable[str], share: float) -> list[str]:
    """The same tests every time: a test is in by a hash of its id, so a new one changes nothing for the others."""
    return sorted(test for test in tests if zlib.crc32(test.encode()) < share * 2**32)


@dataclass
class Outcome:
    result: str  # passed, failed, skipped or absent, as the plugin writes them; or missing: it was not collected
    seconds: str
    test: str
    reason: str = ""

    @property
    def needs_tensorflow(self) -> bool:
        return self.result == "absent" and self.reason.startswith("tensorflow")

    @property
    def needs_sparse_tensors(self) -> bool:
        said = self.reason if self.result == "skipped" else self.test
        return self.result in ("skipped", "missing") and "sparse" in said.lower()


@dataclass
class Comparison:
    """The outcomes of a run beside those on jax and the known failures."""

    outcomes: list[Outcome]
    expected: list[str]  # of those that pass on jax
    known: dict[str, re.Pattern[str]] = field(default_factory=known_failures)

    def __post_init__(self) -> None:
        ran = {outcome.test: outcome for outcome in self.outcomes}
        on_jax = [ran.get(test) or self._never_ran(test, ran) for test in self.expected]
        self.comparable = [each for each in on_jax if not (each.needs_tensorflow or each.needs_sparse_tensors)]
        self.failures = [each for each in self.outcomes if each.result == "failed"]
        self.failures += [each for each in self.comparable if each.result == "missing"]

    @staticmethod
    def _never_ran(test: str, ran: dict[str, Outcome]) -> Outcome:
        """Absent as its whole module is, for want of a package; or missing."""
        module = ran.get(test.partition("::")[0])
        return Outcome("absent", "", test, module.reason) if module else Outcome("missing", "", test)

    def is_known(self, outcome: Outcome) -> bool:
        return any(pattern.fullmatch(outcome.test) for pattern in self.known.values())

    @property
    def unexpected(self) -> list[Outcome]:
        return [each for each in self.failures if not self.is_known(each)]

    @property
    def mended(self) -> list[str]:
        """The known failures of which every test that ran passed."""
        ran = {
            name: [each.result for each in self.outcomes if pattern.fullmatch(each.test)]
            for name, pattern in self.known.items()
        }
        return [name for name, results in ran.items() if results and set(results) == {"passed"}]

    @property
    def share(self) -> float:
        return sum(each.result == "passed" for each in self.comparable) / max(len(self.comparable), 1)

    def report(self) -> None:
        counts = Counter("needs TensorFlow" if each.needs_tensorflow else each.result for each in self.outcomes)
        print("\n" + ", ".join(f"{counts[name]} {name}" for name in ("passed", "failed", "skipped", "needs TensorFlow")))
        show("need a package that is not installed, modules or single tests", reasons(self.outcomes, "absent"))
        show("skipped, by reason", reasons(self.outcomes, "skipped"))
        show("pass on jax, but are skipped here", reasons(self.comparable, "skipped"))
        passed = sum(each.result == "passed" for each in self.comparable)
        print(f"\nof the {len(self.comparable)} that pass on jax and need neither TensorFlow nor sparse tensors,", end=" ")
        print(f"{passed} pass here: {self.share:.2%}")
        print(f"{len(self.failures)} failures, {sum(map(self.is_known, self.failures))} of them known")
        show("unexpected failures", [f"{each.test}  {each.reason or 'was not collected'}" for each in self.unexpected])
        show("known failures that pass now: take them out of the file", self.mended)


def reasons(outcomes: Iterable[Outcome], result: str) -> list[str]:
    counts = Counter(each.reason for each in outcomes if each.result == result)
    return [f"{count:5d}  {reason}" for reason, count in counts.most_common()]


def show(title: str, lines: list[str]) -> None:
    if lines:
        print(f"\n{title} ({len(lines)}):", *lines, sep="\n  ")


def run(arguments: list[str], backend: str, outcomes: Path | None, listed: list[str] | None = None) -> list[Outcome]:
    """One run of pytest, in this process; what each test came to."""
    if backend != "gradtape":
        os.environ["KERAS_BACKEND"] = backend  # Keras reads it when it is imported
    os.environ["PYTHONHASHSEED"] = "0"  # some tests are made from sets: all workers have to find them in one order
    packages = site_packages()
    sys.path.insert(0, str(FOLDER))
    paths = [str(packages / each) if each.startswith("keras/") else each for each in arguments]
    options = ["-p", "keras_suite_plugin", "-c", str(FOLDER / "pytest.ini"), "--rootdir", str(packages)]
    with tempfile.TemporaryDirectory() as folder:
        written = outcomes.resolve() if outcomes else Path(folder, "outcomes.tsv")
        options += ["--keras-on", backend, "--keras-outcomes", str(written)]
        if listed is not None:
            wanted = Path(folder, "listed.txt")
            wanted.write_text("\n".join(listed))
            options += ["--keras-listed", str(wanted)]
        pytest.main([*options, *paths])
        return [Outcome(*line.split("\t")) for line in written.read_text().splitlines()]


def everything() -> list[str]:
    """All but the ready-made networks, whose tests download weights."""
    ignored = site_packages() / "keras" / "src" / "applications"
    return ["keras/src", f"--ignore={ignored}", "--tb=no"]


def parse(arguments: list[str] | None) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--on", default="gradtape", help="the backend: gradtape, or one of Keras's own")
    parser.add_argument("--as-tensorflow", action="store_true", help="gradtape answers to the name tensorflow, too")
    parser.add_argument("--record-jax", action="store_true", help="write the list of tests that pass on jax")
    parser.add_argument("--sample", type=float, help="the share of the tests that pass on jax to run")
    parser.add_argument("--part", default="1/1", help="of the sample: 2/4 is the second of four parts")
    parser.add_argument("--outcomes", type=Path, help="the file to write: outcome, seconds, test id, reason")
    return parser.parse_known_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options, rest = parse(arguments)
    some = any(argument.startswith("keras/") for argument in rest)
    whole = not (some or options.sample)
    outcomes = options.outcomes or (Path("out/keras_suite.tsv") if whole else None)
    if options.record_jax:
        record_passing_on_jax(run(everything() + rest, "jax", outcomes))
        return 0
    listed, expected = None, passing_on_jax()
    if options.sample:
        part, parts = map(int, options.part.split("/"))
        chosen = sample(expected, options.sample)
        listed = expected = chosen[(part - 1) * len(chosen) // parts : part * len(chosen) // parts]
        rest = sorted({test.partition("::")[0] for test in listed}) + rest
    rest += ["--keras-as-tensorflow"] if options.as_tensorflow else []
    results = run(everything() + rest if whole else rest, options.on, outcomes, listed)
    if some:
        expected = sorted(set(expected) & {each.test for each in results})
    comparison = Comparison(results, expected)
    comparison.report()
    return 1 if comparison.unexpected or (whole and comparison.share < REQUIRED) else 0


if __name__ == "__main__":
    sys.exit(main())
