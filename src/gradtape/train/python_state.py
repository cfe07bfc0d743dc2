"""States beyond variables: Python objects that say how they are saved, and the streams of `tf.random`."""

from __future__ import annotations

from typing import Any

from gradtape.errors import message
from gradtape.ops import random


class PythonState:
    """Base of Python objects with a state of their own: ``serialize()`` gives it as text or bytes, ``deserialize`` takes it."""

    def serialize(self) -> str | bytes:
        text = f"{type(self).__name__} must define `serialize`."
        raise NotImplementedError(
            message(text, received="a class without it", fix="def serialize(self): return json.dumps(self.state)")
        )

    def deserialize(self, string_value: Any) -> None:
        raise NotImplementedError(
            message(
                f"{type(self).__name__} must define `deserialize`.",
                received="a class without it",
                fix="def deserialize(self, string_value): self.state = json.loads(string_value)",
            )
        )

    def _state(self) -> Any:
        return self.serialize()

    def _restore(self, state: Any) -> None:
        self.deserialize(state)


class RandomStreams:
    """What `tf.random.normal` and its kin, dropout and shuffles draw from, as something that a checkpoint can hold.

    With it in a checkpoint, a restored program draws the numbers that the saved one would have drawn next.

    >>> import tempfile
    >>> checkpoint = tf.train.Checkpoint(random=tf.train.RandomStreams())
    >>> path = checkpoint.save(tempfile.mkdtemp() + "/ckpt")
    >>> before = tf.random.normal([2])
    >>> status = checkpoint.restore(path)
    >>> bool(tf.reduce_all(tf.random.normal([2]) == before))
    True
    """

    def _state(self) -> dict[str, Any]:
        streams = random._streams
        if streams.seed is None and None not in streams.open:
            random.uniform([1])  # an unpredictable stream begins with its first number
        with streams.lock:
            seeds = None if streams.op_seeds is None else streams.op_seeds.getstate()
            return {"seed": streams.seed, "op_seeds": seeds, "open": dict(streams.open)}

    def _restore(self, state: dict[str, Any]) -> None:
        random.set_seed(state["seed"])
        streams = random._streams
        with streams.lock:
            if state["op_seeds"] is not None:
                streams.op_seeds.setstate(state["op_seeds"])
            streams.open = dict(state["open"])
