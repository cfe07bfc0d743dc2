"""Record what TensorFlow's functions return and refuse, for tests/test_toplevel.py.

Run it with a Python that has TensorFlow:

    python tools/record_function_goldens.py tests/goldens/functions.json
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import tensorflow as tf

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from function_calls import CALLS, outcome

NOISE = re.compile(r"\{\{function_node[^}]*\}\} |\s*(; NodeDef|\[Op:|, node name|name: ).*", re.DOTALL)


def main() -> None:
    found = {}
    for call in CALLS:
        found[call] = outcome(tf, call)
        if "text" in found[call]:
            found[call]["text"] = NOISE.sub("", found[call]["text"])[:200]
    lines = ",\n".join(f"{json.dumps(call)}: {json.dumps(what)}" for call, what in found.items())
    Path(sys.argv[1]).write_text(f'{{"tensorflow": "{tf.__version__}", "calls": {{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    main()
