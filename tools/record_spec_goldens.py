"""Record what a real TensorFlow does in the cases of tests/spec, as data for the test suite.

Run with a Python that has TensorFlow: ``python tools/record_spec_goldens.py``. The suite itself never needs TensorFlow.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # its kernels word some errors in another way


def main() -> int:
    """Run every case, write the outcomes, and complain about a wording that TensorFlow does not use."""
    import logging

    import tensorflow as tf
    from spec import all_cases  # noqa: F401  # registers every case
    from spec.cases import CASES, outcome

    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    outcomes, wrong = {}, 0
    for name, case in CASES.items():
        found = outcomes[name] = outcome(case.run, tf)
        if bool(case.says) != ("error" in found) or case.says not in found.get("text", ""):
            wrong += 1
            print(f"{name}: expected an error with {case.says!r}, TensorFlow gives {found}")
        if "text" in found:
            found["text"] = found["text"].splitlines()[0][:200] if found["text"] else ""
    path = ROOT / "tests" / "goldens" / "spec.json"
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(found)}" for name, found in outcomes.items())
    path.write_text(f'{{"tensorflow": {json.dumps(tf.__version__)}, "cases": {{\n{lines}\n}}}}\n')
    print(f"{len(outcomes)} cases from TensorFlow {tf.__version__}, {wrong} wordings to look at.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
