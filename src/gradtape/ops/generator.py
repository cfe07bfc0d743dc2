"""The explicit random `Generator`, whose whole state is a variable."""

from __future__ import annotations

import enum
import math
import threading
from typing import Any

import numpy as np

from gradtape.core.context import thread
from gradtape.core.variable import Variable
from gradtape.errors import message
from gradtape.ops import elementwise, philox, random, stateless
from gradtape.ops import shape as shapes
from gradtape.ops.execution import Unstageable, staging
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

_WORD = 2**64
_SIGN = -(2**63)


class Algorithm(enum.Enum):
    PHILOX, THREEFRY, AUTO_SELECT = 1, 2, 3


def check_algorithm(alg: Any) -> None:
    """Refuse an algorithm that is not there."""
    names = {"philox", "auto_select", 1, 3, Algorithm.PHILOX, Algorithm.AUTO_SELECT, None}
    value = int(alg) if isinstance(alg, Tensor) else alg
    if value not in names:
        raise ValueError(
            message(
                f"Argument `alg` got unsupported value {alg}. Supported values are philox for the Philox algorithm, "
                "and auto_select for auto-selection.",
                received=f"alg={alg!r}",
                expected="'philox' or 'auto_select'",
                why="there is one bit generator, NumPy's Philox",
            )
        )


def create_rng_state(seed: Any, alg: Any = "philox") -> Tensor:
    """The state (counter low, counter high, key) from a seed: an int, or up to three of them, the last being the key."""
    check_algorithm(alg)
    if isinstance(seed, int):
        words = [seed >> shift for shift in (0, 64, 128)]  # two's complement, 192 bits of it
    else:
        given = [int(word) for word in np.atleast_1d(np.asarray(convert_to_tensor(seed, dtype_hint=dtypes.int64)))][:3]
        words = [*[0] * (3 - len(given)), *given]
    return wrap(np.array([word % _WORD for word in words], np.uint64).view(np.int64))


class Generator:
    """Random numbers whose whole state is a variable: (counter low, counter high, key).

    `from_seed` makes the seed the counter, as TensorFlow does, so neighbouring seeds give streams that soon overlap;
    `split` gives independent ones.

    >>> g = Generator.from_seed(7)
    >>> g.normal([3]).shape, g.state.shape
    (TensorShape([3]), TensorShape([3]))
    """

    def __init__(self, copy_from: Generator | None = None, state: Any = None, alg: Any = None) -> None:
        if copy_from is None and state is None:
            raise ValueError(
                message("A Generator needs a state.", fix="tf.random.Generator.from_seed(1), or from_non_deterministic_state()")
            )
        check_algorithm(alg)
        value = copy_from.state if copy_from is not None else state
        self._lock = threading.Lock()
        self._traced: tuple[Any, int] | None = None  # the latest state in a function that is being compiled, and how far it is
        self._state_var = Variable(_three(value), dtype=dtypes.int64, name="StateVar", trainable=False)

    @classmethod
    def from_state(cls, state: Any, alg: Any = None) -> Generator:
        return cls(state=state, alg=alg)

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        return cls(state=create_rng_state(seed, alg), alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        return cls(state=np.array([random.entropy() for _ in range(3)], np.uint64).view(np.int64), alg=alg)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any = None) -> Generator:
        return cls(state=_joined(key, counter), alg=alg)

    # State

    @property
    def state(self) -> Variable:
        return self._state_var

    @property
    def key(self) -> Tensor:
        return wrap(self._words()[2:].reshape(()))

    @property
    def algorithm(self) -> int:
        return Algorithm.PHILOX.value

    def _words(self) -> np.ndarray:
        return self._state_var._tensor._array

    def reset(self, state: Any) -> None:
        with self._lock:
            self._state_var.assign(_three(state))

    def reset_from_seed(self, seed: Any) -> None:
        self.reset(create_rng_state(seed))

    def reset_from_key_counter(self, key: Any, counter: Any) -> None:
        self.reset(_joined(key, counter))

    def skip(self, delta: Any) -> Tensor:
        """Move on as if ``delta`` numbers had been drawn; the state before."""
        with self._lock:
            count, before = random.index(delta, "delta"), self._words()
            if type(before) is np.ndarray:
                return wrap(self._advance(count))
            self._move(count)
            return wrap(before)

    def _advance(self, count: int) -> np.ndarray:
        """256 steps of the 128-bit counter per number, as in TensorFlow; the state before."""
        before = self._words().copy()
        low, high, key = (int(word) for word in before)
        counter = (high % _WORD << 64 | low % _WORD) + 256 * count
        words = np.array([counter % _WORD, (counter >> 64) % _WORD, key % _WORD], np.uint64)
        self._state_var.assign(words.view(np.int64))
        return before

    def _source(self, shape: Any) -> random.Source:
        count = math.prod(random.lengths_of(shape))

        def draw(sample: random.Sample, blocks: int) -> Any:
            with self._lock:
                if type(self._words()) is not np.ndarray:
                    return self._draw_at_each_call(sample, count)
                return sample(*_stream(self._advance(count)))

        return draw if staging.inside else random.per_element(draw)

    def _draw_at_each_call(self, sample: random.Sample, count: int) -> Any:
        """While a function is compiled: numbers for each call from the state that it begins with, which the program changes."""
        before = self._drawn_so_far()
        drawn = staging.draw(lambda: sample(*_stream(self._words(), 256 * before)), sample(0, 0))
        self._move(count)
        return drawn

    def _drawn_so_far(self) -> int:
        """How many numbers each call of a function that is being compiled will have drawn up to here."""
        words = self._words()
        if self._traced is not None and self._traced[0] is words:
            return self._traced[1]
        if thread.batch or not staging.is_first(self._state_var, words):
            raise Unstageable("a random generator that is reset, or that draws in a loop")
        return 0

    def _move(self, count: int) -> None:
        """Advance a state that is traced: add to the 128-bit counter, of which the halves have no sign."""
        total = self._drawn_so_far() + count
        low, high, key = self._state_var
        moved = low + 256 * count
        carry = (moved ^ _SIGN) < (low ^ _SIGN)
        self._state_var.assign(shapes.stack(moved, high + elementwise.cast(carry, dtypes.int64), key, axis=0))
        self._traced = self._words(), total

    # Numbers

    def normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, name: str | None = None
    ) -> Tensor:
        return random.normal_from(self._source(shape), philox.normal, shape, mean, stddev, dtype)

    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, name: str | None = None
    ) -> Tensor:
        return random.normal_from(self._source(shape), philox.truncated_normal, shape, mean, stddev, dtype)

    def uniform(
        self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32, name: str | None = None
    ) -> Tensor:
        kind = dtypes.as_dtype(dtype)
        if kind.is_integer and (minval is None) != (maxval is None):
            text = (
                f"For integer dtype {kind}, minval and maxval must be both `None` or both non-`None`; "
                f"got minval={minval} and maxval={maxval}"
            )
            raise ValueError(message(text, fix="give both, or neither for the whole range"))
        return stateless.any_uniform(self._source(shape), shape, minval, maxval, kind)

    def uniform_full_int(self, shape: Any, dtype: Any = dtypes.uint64, name: str | None = None) -> Tensor:
        return random.full_range(self._source(shape), shape, dtypes.as_dtype(dtype))

    def binomial(self, shape: Any, counts: Any, probs: Any, dtype: Any = dtypes.int32, name: str | None = None) -> Tensor:
        return random.binomial_from(self._source(shape), shape, counts, probs, dtype)

    def make_seeds(self, count: int = 1) -> Tensor:
        """Seeds for stateless functions, one per column of a (2, count) tensor."""
        first = self.uniform_full_int([count], dtypes.int64)
        return shapes.stack(first, elementwise.zeros_like(first), axis=0)

    def split(self, count: int = 1) -> list[Generator]:
        """Independent generators, one per key drawn from this one."""
        return [Generator(state=[0, 0, int(key)]) for key in self.uniform_full_int([count], dtypes.int64)._array]


def _stream(words: np.ndarray, further: int = 0) -> tuple[int, int]:
    """The key, and the counter so many steps further on."""
    low, high, key = (int(word) % _WORD for word in words)
    return key, ((high << 64 | low) + further) % _WORD**2


def _three(state: Any) -> Tensor:
    words = np.asarray(convert_to_tensor(state)).astype(np.int64)
    if words.shape != (3,):
        raise ValueError(message(f"Shapes {words.shape} and [3] are incompatible", expected="counter low, counter high, key"))
    return wrap(words)


def _joined(key: Any, counter: Any) -> np.ndarray:
    parts = [np.asarray(convert_to_tensor(p)).astype(np.int64).reshape(-1) for p in (counter, key)]
    return np.concatenate(parts)


_global_generator: Generator | None = None


def get_global_generator() -> Generator:
    """The process's generator, unpredictable until `set_global_generator` is called."""
    global _global_generator
    if _global_generator is None:
        _global_generator = Generator.from_non_deterministic_state()
    return _global_generator


def set_global_generator(generator: Generator) -> None:
    """Replace the process's generator."""
    global _global_generator
    if not isinstance(generator, Generator):
        text = "set_global_generator needs a Generator."
        raise TypeError(message(text, received=f"{type(generator).__name__}", fix="tf.random.Generator.from_seed(1)"))
    _global_generator = generator
