"""Write a checkpoint with TensorFlow, for tests/train/test_bundle.py.

Run it with a Python that has TensorFlow:

    python tools/record_checkpoint_golden.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import tensorflow as tf

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "train"))

import bundle_program

if __name__ == "__main__":
    prefix = Path(bundle_program.__file__).parents[1] / "goldens" / "checkpoint" / "theirs"
    tf.train.Checkpoint(**bundle_program.objects(tf)).save(str(prefix))
