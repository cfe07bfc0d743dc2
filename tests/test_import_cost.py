"""`import gradtape` loads NumPy and our own modules, and nothing heavy."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

import pytest

NOT_LOADED = (
    "jax jaxlib keras scipy ml_dtypes opt_einsum matplotlib safetensors tensorboardX malt gradtape.xp.jax gradtape.testing "
    "inspect asyncio unittest doctest multiprocessing concurrent.futures"
).split()


def python(code: str, **environment: str) -> str:
    merged = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=merged).stdout


def test_importing_gradtape_loads_nothing_heavy():
    """What `import numpy` loads by itself is not ours to forbid."""
    listing = "import sys; print(*sys.modules)"
    loaded = set(python(f"import gradtape; {listing}").split()) - set(python(f"import numpy; {listing}").split())
    assert not loaded.intersection(NOT_LOADED)


@pytest.mark.slow
def test_import_time(capsys, tmp_path):
    """Printed, not judged: the budget is 1.5 times `import numpy`, both from bytecode, as every run after the first."""
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}
    python("import gradtape", **compiled)
    timing = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"
    times: dict[str, list[float]] = {"numpy": [], "gradtape": []}
    for _ in range(7):
        for module, seconds in times.items():
            seconds.append(float(python(timing.format(module), **compiled)))
    numpy, ours = (statistics.median(times[module]) for module in ("numpy", "gradtape"))
    with capsys.disabled():
        print(f"\nimport gradtape: {ours * 1e3:.0f} ms, {ours / numpy:.2f} x import numpy ({numpy * 1e3:.0f} ms)")
