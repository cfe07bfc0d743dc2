"""What every test shares."""

import importlib.util

import hypothesis
import pytest

from gradtape.core.context import thread

# Shared machines stall, so no deadline; the same examples every time, so that a red run means a change.
hypothesis.settings.register_profile("gradtape", deadline=None, derandomize=True, max_examples=60)
hypothesis.settings.register_profile("search", deadline=None, max_examples=2000)
hypothesis.settings.load_profile("gradtape")


@pytest.fixture
def compiled_quickly(monkeypatch):
    """The options to compile without LLVM's optimisations, which take half of the time; functions are compiled with them.

    XLA's own passes are those of any other program.
    """
    options = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    if importlib.util.find_spec("jax") is not None:
        monkeypatch.setattr("gradtape.xp.jax_devices.compiler_options", lambda: options)
    return options


@pytest.fixture(autouse=True)
def _no_tape_is_left_recording():
    yield
    left, thread.recorders = thread.recorders, ()
    assert not left, "the test left a tape recording"
