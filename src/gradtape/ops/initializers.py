"""Initial values for variables: callables of a shape and a dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import message
from gradtape.ops.arguments import lengths
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.shape import TensorShape, as_tuple
from gradtape.values.tensor import Tensor, wrap

_PARTITION = frozenset({"partition_shape", "partition_offset"})


class Initializer:
    """A callable ``(shape, dtype)`` that gives a tensor, and can be made again from its configuration."""

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Tensor:
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The arguments with which `from_config` makes it again."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        """An initializer from what `get_config` gave."""
        config = {name: value for name, value in config.items() if name != "dtype"}
        return cls(**config)

    def _arguments(self, shape: Any, dtype: Any, kwargs: dict[str, Any]) -> tuple[tuple[int, ...], dtypes.DType]:
        """The shape, or that of the part to make of a variable in parts, and the dtype."""
        for name in kwargs:
            if name not in _PARTITION:
                text = f"Keyword argument should be one of {sorted(_PARTITION)!r}. Received: {name}"
                raise TypeError(message(text, expected=f"{' and '.join(sorted(_PARTITION))}"))
        wanted = kwargs.get("partition_shape", shape)
        size = as_tuple(wanted) if isinstance(wanted, TensorShape) else lengths(wanted)
        return size, dtypes.as_dtype(dtype)


def _numeric(dtype: dtypes.DType) -> None:
    if dtype is dtypes.string:
        text = f"Argument `dtype` expected to be numeric or boolean. Received {dtype}."
        raise ValueError(message(text, received=f"dtype={dtype!r}", expected="a number type or tf.bool"))


def _floating(dtype: dtypes.DType) -> None:
    if not dtype.is_floating:
        text = f"Argument `dtype` expected to be floating point. Received {dtype}."
        raise ValueError(message(text, received=f"dtype={dtype!r}", expected="tf.float32 or another floating type"))


class Zeros(Initializer):
    """All zeros."""

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Tensor:
        size, kind = self._arguments(shape, dtype, kwargs)
        _numeric(kind)
        return wrap(np.zeros(size, kind.numpy))


class Ones(Initializer):
    """All ones."""

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Tensor:
        size, kind = self._arguments(shape, dtype, kwargs)
        _numeric(kind)
        return wrap(np.ones(size, kind.numpy))


class Constant(Initializer):
    """One value, or an array with as many elements as the shape has."""

    def __init__(self, value: Any = 0, support_partition: bool = False) -> None:
        if not (np.isscalar(value) or isinstance(value, (list, tuple, np.ndarray))):
            text = (
                f"Invalid type for initial value: {type(value).__name__}. Expected Python scalar, list or tuple of values, "
                "or numpy.ndarray."
            )
            raise TypeError(message(text, fix="value.numpy() makes an array of a tensor"))
        self.value = value
        self.support_partition = support_partition

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Tensor:
        found = convert_to_tensor(self.value, None if dtype is None else dtypes.as_dtype(dtype))
        size, _ = self._arguments(shape, found.dtype, kwargs)
        if found._array.ndim == 0:
            return wrap(np.full(size, found._array, found._array.dtype))
        if found._array.size != int(np.prod(size)):
            raise TypeError(
                message(
                    f"Expected Tensor's shape: {size}, got {found._array.shape}.",
                    received=f"{found._array.size} elements for shape {size}",
                    expected=f"{int(np.prod(size))} elements, or one number for all",
                )
            )
        return wrap(found._array.reshape(size))

    def get_config(self) -> dict[str, Any]:
        return {"value": self.value}


def _drawn(kind: str, shape: tuple[int, ...], first: Any, second: Any, dtype: dtypes.DType, seed: Any) -> Tensor:
    from gradtape.ops import random, stateless  # loaded at the first draw: every import of the package sees this module

    if seed is None:
        return getattr(random, kind)(shape, first, second, dtype)
    return getattr(stateless, f"stateless_{kind}")(shape, [seed, 0], first, second, dtype)


class RandomNormal(Initializer):
    """Normal values; with a seed, the same ones at every call."""

    def __init__(self, mean: Any = 0.0, stddev: Any = 0.05, seed: Any = None) -> None:
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Tensor:
        size, kind = self._arguments(shape, dtype, kwargs)
        _floating(kind)
        return _drawn("normal", size, self.mean, self.stddev, kind, self.seed)

    def get_config(self) -> dict[str, Any]:
        return {"mean": self.mean, "stddev": self.stddev, "seed": self.seed}


class RandomUniform(Initializer):
    """Uniform values in [minval, maxval); with a seed, the same ones at every call."""

    def __init__(self, minval: Any = -0.05, maxval: Any = 0.05, seed: Any = None) -> None:
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Tensor:
        size, kind = self._arguments(shape, dtype, kwargs)
        if not kind.is_floating and not kind.is_integer:
            text = f"Argument `dtype` expected to be numeric or boolean. Received {kind}."
            raise ValueError(message(text, received=f"dtype={kind!r}", expected="a number type"))
        return _drawn("uniform", size, self.minval, self.maxval, kind, self.seed)

    def get_config(self) -> dict[str, Any]:
        return {"minval": self.minval, "maxval": self.maxval, "seed": self.seed}
