"""Record what TensorFlow's functions return and refuse, for tests/test_function_goldens.py.

Run it with a Python that has TensorFlow; without arguments it records every family:

    python tools/record_function_goldens.py [family …]
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import tensorflow as tf

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from function_calls import FAMILIES, FOLDER, calls, outcome

NOISE = re.compile(r"\{\{function_node[^}]*\}\} |\s*(; NodeDef|Traceback \(most|\[Op:|, node name|name: ).*", re.DOTALL)


def main() -> None:
    for family in sys.argv[1:] or FAMILIES:
        found = {}
        for call in calls(family):
            found[call] = outcome(tf, call)
            if "text" in found[call]:
                found[call]["text"] = NOISE.sub("", found[call]["text"])[:200]
        lines = ",\n".join(f"{json.dumps(call)}: {json.dumps(what)}" for call, what in found.items())
        (FOLDER / f"{family}.json").write_text(f'{{"tensorflow": "{tf.__version__}", "calls": {{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    main()
