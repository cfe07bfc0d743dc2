"""`tf.train`: checkpoints, and averages of variables."""

from types import SimpleNamespace

from gradtape.scope import missing
from gradtape.train.averages import ExponentialMovingAverage
from gradtape.train.checkpoint import Checkpoint, CheckpointOptions
from gradtape.train.folder import checkpoints_iterator, get_checkpoint_state, latest_checkpoint
from gradtape.train.manager import CheckpointManager
from gradtape.train.python_state import PythonState, RandomStreams
from gradtape.train.reader import list_variables, load_checkpoint, load_variable

__all__ = [
    "Checkpoint", "CheckpointManager", "CheckpointOptions", "ExponentialMovingAverage", "RandomStreams",
    "checkpoints_iterator", "experimental", "get_checkpoint_state", "latest_checkpoint", "list_variables",
    "load_checkpoint", "load_variable",
]  # fmt: skip

experimental = SimpleNamespace(PythonState=PythonState)

__getattr__ = missing(__name__, __all__)
