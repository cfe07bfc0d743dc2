"""Counts the instructions of six small eager programs, and compares them with those of an earlier revision.

    python tools/count_instructions.py                 # against the revision that benchmarks/instructions.json names
    python tools/count_instructions.py --against HEAD~3
    python tools/count_instructions.py --accept "why"  # what is counted from now on is compared with HEAD

Seconds depend on what else a machine does; instructions, counted by valgrind's callgrind, do not: two counts of the same
text differ by 0.3 % at most. Both revisions run with the same Python and the same NumPy. More than 3 % above: exit status 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parent.parent
NAMED = ROOT / "benchmarks" / "instructions.json"
ALLOWED = 0.03

NETWORK = """
shapes = (4, 16), (16,), (16, 16), (16,), (16, 1), (1,)
weights = [tf.Variable(rng.standard_normal(shape).astype("f4")) for shape in shapes]
x, y = (tf.constant(rng.standard_normal((8, n)).astype("f4")) for n in (4, 1))
def loss():
    h = tf.tanh(x @ weights[0] + weights[1])
    h = tf.tanh(h @ weights[2] + weights[3])
    return tf.reduce_mean((h @ weights[4] + weights[5] - y) ** 2)
def gradients():
    with tf.GradientTape() as tape:
        value = loss()
    return tape.gradient(value, weights)
"""
SQUARE = "a = tf.constant(np.ones((16, 16), 'f4')); b = tf.Variable(np.ones((16, 16), 'f4'))"

PROGRAMS = {  # what is made ready, and what is counted
    "an op without a tape": (SQUARE, "a + a"),
    "ten recorded ops": (SQUARE, "with tf.GradientTape() as tape: [a + b for _ in range(10)]"),
    "a step with SGD": (NETWORK + "opt = tf.optimizers.SGD(0.01)", "opt.apply_gradients(zip(gradients(), weights))"),
    "a step with Adam": (NETWORK + "opt = tf.optimizers.Adam(0.01)", "opt.apply_gradients(zip(gradients(), weights))"),
    "a step by hand": (NETWORK, "for w, g in zip(weights, gradients()): w.assign_sub(0.01 * g)"),
    "a second derivative": (
        NETWORK,
        "with tf.GradientTape() as outer:\n        g = gradients()[0]\n    outer.gradient(g, weights[0])",
    ),
}
RUNS = 20, 120
PRELUDE = "import gc, sys\nimport numpy as np\nimport gradtape as tf\nrng = np.random.default_rng(0)\n"


def counted(source: Path, program: tuple[str, str]) -> float:
    """Instructions of one run of a program."""
    ready, action = program
    text = f"{PRELUDE}{ready}\ngc.disable()\nfor _ in range(int(sys.argv[1])):\n    {action}\n"
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", text]
    subprocess.run([*command, "1"], env=environment, capture_output=True, check=False)  # Python keeps what it compiles
    found = []
    for runs in RUNS:
        valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command, str(runs)]
        done = subprocess.run(valgrind, env=environment, capture_output=True, text=True, check=False)
        total = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
        if done.returncode or total is None:
            sys.exit(f"{action!r} did not run:\n{done.stderr[-2000:]}")
        found.append(int(total.group(1)))
    if found[1] <= found[0]:
        sys.exit(f"{action!r} took more the first time: something was made ready only then.")
    return (found[1] - found[0]) / (RUNS[1] - RUNS[0])


def sources_of(revision: str, folder: Path) -> Path | None:
    """The sources of a revision, unpacked; None if it is not in this clone."""
    archive = subprocess.run(["git", "archive", revision, "src"], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        return None
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder / "src"


def accept(why: str) -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    NAMED.write_text(json.dumps({"against": head, "why": why}, indent=1) + "\n")
    print(f"{NAMED.relative_to(ROOT)} names {head[:9]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", default=json.loads(NAMED.read_text())["against"] if NAMED.exists() else "HEAD")
    parser.add_argument("--accept", metavar="WHY")
    options = parser.parse_args()
    if options.accept:
        accept(options.accept)
        return
    if shutil.which("valgrind") is None:
        print("Instructions were not counted: valgrind is not installed.")
        return
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        earlier = sources_of(options.against, Path(folder))
        if earlier is None:
            print(f"Instructions were not counted: this clone has no revision {options.against}.")
            return
        before, after = [pool.map(partial(counted, source), PROGRAMS.values()) for source in (earlier, ROOT / "src")]
        rows = list(zip(PROGRAMS, before, after, strict=True))
    print(f"instructions, {options.against[:9]} and now")
    for name, old, new in rows:
        print(f"  {name:24}{old:12,.0f}{new:12,.0f}{new / old - 1:+9.1%}")
    worst = max(new / old - 1 for _, old, new in rows)
    if worst > ALLOWED:
        sys.exit(f"At most {ALLOWED:.0%} more is allowed. If it is worth that: tools/count_instructions.py --accept 'why'.")


if __name__ == "__main__":
    main()
