"""What every test shares."""

import hypothesis
import pytest

from gradtape.core.context import thread

# Shared machines stall, so no deadline; the same examples every time, so that a red run means a change.
hypothesis.settings.register_profile("gradtape", deadline=None, derandomize=True, max_examples=60)
hypothesis.settings.register_profile("search", deadline=None, max_examples=2000)
hypothesis.settings.load_profile("gradtape")


@pytest.fixture(autouse=True)
def _no_tape_is_left_recording():
    yield
    left, thread.recorders = thread.recorders, ()
    assert not left, "the test left a tape recording"
