"""`tf.config.threading`: numbers of threads, noted and returned; NumPy's libraries read their own environment variables."""

from __future__ import annotations

from gradtape.scope import missing

__all__ = [
    "get_inter_op_parallelism_threads", "get_intra_op_parallelism_threads", "set_inter_op_parallelism_threads",
    "set_intra_op_parallelism_threads",
]  # fmt: skip
__getattr__ = missing(__name__, __all__)

_threads = {"inter": 0, "intra": 0}


def get_inter_op_parallelism_threads() -> int:
    """The number that was set, 0 if none was."""
    return _threads["inter"]


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Accepted: eager operations run one after another."""
    _threads["inter"] = int(num_threads)


def get_intra_op_parallelism_threads() -> int:
    """The number that was set, 0 if none was."""
    return _threads["intra"]


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Accepted: set OMP_NUM_THREADS or OPENBLAS_NUM_THREADS before Python starts to limit NumPy's matrix products."""
    _threads["intra"] = int(num_threads)
