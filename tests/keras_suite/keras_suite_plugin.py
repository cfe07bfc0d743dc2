"""The pytest plugin of tools/keras_suite.py: Keras's tests meet our backend, and every outcome is written down.

It is loaded by name (``-p``), in the workers of xdist too. It also answers to the name ``conftest``: seven of Keras's test
modules import ``skip_if_backend`` from the conftest of Keras's repository, which the wheel does not contain.
"""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.modules["conftest"] = sys.modules[__name__]

SECONDS_PER_TEST = 300
ADDRESS = re.compile(r"at0x[0-9a-f]+")
# They go by the backend's name in a matter in which we are as TensorFlow is: gradients by a tape, names of devices.
AS_TENSORFLOW = re.compile(
    r"::test_(custom_gradient|divide_no_nan_gradients|einsum_custom_ops_for_tensorflow|fake_quant_with_min_max_vars"
    r"|fit_with_data_adapter_py_dataset|quantize_float8$)"
)
ABSENT_PACKAGE = re.compile(r"No module named '(\w+)|requires the '?([\w-]+)'? (?:module|package)|`pip install ([\w-]+)`")


def skip_if_backend(given: str, reason: str) -> pytest.MarkDecorator:
    from keras.src import backend

    return pytest.mark.skipif(backend.backend() == given, reason=reason)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("Keras's suite")
    group.addoption("--keras-on", default="gradtape", help="the backend to be tested")
    group.addoption("--keras-as-tensorflow", action="store_true", help="gradtape takes TensorFlow's name, too")
    group.addoption("--keras-listed", type=Path, help="a file of test ids: run no others")
    group.addoption("--keras-outcomes", type=Path, help="the file for the outcomes")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.keras_on == "gradtape":
        import gradtape
        import gradtape.keras  # from here on Keras computes on gradtape

        if config.option.keras_as_tensorflow:
            gradtape.install_as_tensorflow()
    if config.option.keras_outcomes and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Outcomes(config.option.keras_outcomes))


def rename(item: pytest.Item, name: str) -> None:
    """Give a test another id; pytest has no way to do this, and has kept it in two places."""
    if hasattr(item, "_nodeid"):
        item._nodeid = name
    else:
        from _pytest.nodeid import coerce_node_id

        item._id = coerce_node_id(name)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if config.option.keras_on == "gradtape" and AS_TENSORFLOW.search(item.nodeid):
            item.own_markers[:] = [mark for mark in item.own_markers if mark.name != "skipif"]
        if ADDRESS.search(item.nodeid):  # it would be another test in every process
            rename(item, ADDRESS.sub("at0x", item.nodeid))
    if config.option.keras_listed:
        listed = set(config.option.keras_listed.read_text().splitlines())
        items[:] = [item for item in items if item.nodeid in listed]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[Any]:
    """A module that refuses to be imported on a backend whose name it does not know is told the name whose place we take."""
    from keras.src.backend import config

    name = config._BACKEND
    if name == "gradtape" and collector.nodeid.endswith("keras/src/trainers/trainer_test.py"):
        config._BACKEND = "numpy"
    try:
        return (yield)
    finally:
        config._BACKEND = name


class CalledTensorFlow:
    """Keras's backend as a test sees it that is to take the branch for TensorFlow; Keras itself sees what it always sees."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def backend(self) -> str:
        return "tensorflow"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)


@pytest.fixture(autouse=True)
def _some_take_the_branch_for_tensorflow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.config.option.keras_on == "gradtape" and AS_TENSORFLOW.search(request.node.nodeid):
        import gradtape

        monkeypatch.setitem(sys.modules, "tensorflow", gradtape)
        monkeypatch.setattr(request.module, "backend", CalledTensorFlow(request.module.backend))


@pytest.fixture(autouse=True)
def _no_seed_of_another_test(request: pytest.FixtureRequest) -> None:
    """As in a new process: under some global seeds a shuffled dataset begins two passes alike, which a test takes amiss."""
    if request.config.option.keras_on == "gradtape":
        import gradtape

        gradtape.random.set_seed(None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A test that hangs fails; the others go on."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"the test ran for more than {SECONDS_PER_TEST} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS_PER_TEST)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Outcomes:
    """Writes a line per test, as it ends: outcome, seconds, test id, reason."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("w", buffering=1)
        self.written: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            self.write(report, report.duration)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self.write(report, 0.0)

    def write(self, report: pytest.TestReport | pytest.CollectReport, seconds: float) -> None:
        if report.nodeid not in self.written:  # a failing teardown, or the same module in another worker
            self.written.add(report.nodeid)
            outcome, reason = outcome_of(report)
            print(outcome, f"{seconds:.2f}", report.nodeid, reason, sep="\t", file=self.file)


def outcome_of(report: pytest.TestReport | pytest.CollectReport) -> tuple[str, str]:
    """One of passed, failed, skipped and absent (it needs a package that is not installed), and why."""
    if report.passed:
        return "passed", ""
    if report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else getattr(report, "wasxfail", "")
        return "skipped", one_line(reason.removeprefix("Skipped: "))
    crash = getattr(report.longrepr, "reprcrash", None)
    said = crash.message if crash else error_in(str(report.longrepr))
    if ("ModuleNotFoundError" in said or "ImportError" in said) and (found := ABSENT_PACKAGE.search(said)):
        of_tensorflow = report.nodeid.startswith("keras/src/backend/tensorflow/")
        return "absent", "tensorflow" if of_tensorflow else next(filter(None, found.groups()))
    return "failed", one_line(said)


def error_in(traceback: str) -> str:
    """The line of a printed traceback that names the last error."""
    return next((line for line in reversed(traceback.splitlines()) if "Error" in line), traceback).removeprefix("E").strip()


def one_line(text: str) -> str:
    return " ".join(text.split())[:300]
