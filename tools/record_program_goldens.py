"""Record the numbers of tests/programs/*.py as TensorFlow prints them, for tests/test_programs.py.

Run it with a Python that has TensorFlow and TensorBoard; without arguments it records every program:

    python tools/record_program_goldens.py [program …]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import tensorflow as tf

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from program_curves import GOLDENS, PROGRAMS, curves


def main() -> None:
    found = json.loads(GOLDENS.read_text())["programs"] if sys.argv[1:] else {}
    found |= {name: curves(tf, name) for name in sys.argv[1:] or PROGRAMS}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found))
    GOLDENS.write_text(f'{{"tensorflow": "{tf.__version__}", "programs": {{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    main()
