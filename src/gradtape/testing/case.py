"""Test cases that compare tensors, arrays, and structures of them."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gradtape.values import nest
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.tensor import Tensor


class Benchmark:
    """Base of classes whose ``benchmark_*`` methods are run by hand."""


def _value(tensor: Any) -> Any:
    return convert_to_tensor(tensor).numpy() if isinstance(tensor, (Tensor, Convertible)) else tensor


def _is_part(value: Any) -> bool:
    """Whether a list with this in it is a structure of values; a list of numbers stands for an array."""
    return isinstance(value, (Tensor, Convertible, np.ndarray, Mapping))


class TestCase(unittest.TestCase):
    """A test case whose assertions take tensors, arrays, and structures of them."""

    __test__ = False  # the class itself is no test

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__test__ = True

    def evaluate(self, tensors: Any) -> Any:
        """The tensors' values as NumPy arrays."""
        return nest.map_structure(_value, tensors)

    def get_temp_dir(self) -> str:
        """A directory of this test's own, removed at its end."""
        import tempfile

        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name

    def _each(self, a: Any, b: Any, compare: Callable[[np.ndarray, np.ndarray], None]) -> None:
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            self._all(a.keys() == b.keys(), f"Keys differ: {sorted(a)} and {sorted(b)}.")
            pairs = [(a[key], b[key]) for key in a]
        elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and any(map(_is_part, (*a, *b))):
            self._all(len(a) == len(b), f"Lengths differ: {len(a)} and {len(b)}.")
            pairs = list(zip(a, b))
        else:
            x, y = np.asarray(_value(a)), np.asarray(_value(b))
            self._all(x.shape == y.shape, f"Shape mismatch: expected {x.shape}, got {y.shape}.")
            return compare(x, y)
        for x, y in pairs:
            self._each(x, y, compare)
        return None

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """Fail unless shapes agree and ``|a - b| <= atol + rtol · |b|``."""
        self._each(a, b, lambda x, y: np.testing.assert_allclose(x, y, rtol, atol, err_msg=msg or ""))

    def assertNotAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """Fail if all elements are close."""
        try:
            self.assertAllClose(a, b, rtol, atol)
        except AssertionError:
            return
        raise AssertionError(f"The two values are close at all elements. {msg or ''}")

    def assertAllCloseAccordingToType(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """As `assertAllClose`, looser for half precision."""
        kinds = {np.asarray(_value(x)).dtype.name for x in (*nest.flatten(a), *nest.flatten(b))}
        loose = 1e-2 if "bfloat16" in kinds else 1e-3 if "float16" in kinds else 0.0
        self.assertAllClose(a, b, max(rtol, loose), max(atol, loose), msg)

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Fail unless shapes and all elements are equal; nan equals nan."""
        self._each(a, b, lambda x, y: np.testing.assert_array_equal(x, y, err_msg=msg or ""))

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Fail if all elements are equal."""
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        raise AssertionError(f"The two values are equal at all elements. {msg or ''}")

    def _all(self, holds: Any, text: str) -> None:
        if not np.all(holds):
            self.fail(text)

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """Fail unless every element is greater."""
        self._all(np.asarray(_value(a)) > _value(comparison_target), f"not all of {a} > {comparison_target}")

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """Fail unless every element is greater or equal."""
        self._all(np.asarray(_value(a)) >= _value(comparison_target), f"not all of {a} >= {comparison_target}")

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """Fail unless every element is less."""
        self._all(np.asarray(_value(a)) < _value(comparison_target), f"not all of {a} < {comparison_target}")

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """Fail unless every element is less or equal."""
        self._all(np.asarray(_value(a)) <= _value(comparison_target), f"not all of {a} <= {comparison_target}")

    def assertAllInRange(self, target: Any, lower_bound: Any, upper_bound: Any) -> None:
        """Fail unless every element is within the bounds."""
        self.assertAllGreaterEqual(target, lower_bound)
        self.assertAllLessEqual(target, upper_bound)

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """Fail unless every element is one of these."""
        self._all(np.isin(np.asarray(_value(target)), list(expected_set)), f"not all of {target} in {expected_set}")

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: str | None = None) -> None:
        """Fail unless the shapes are equal."""
        self._all(np.shape(_value(input_a)) == np.shape(_value(input_b)), msg or "the shapes differ")

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """Fail unless the element type is this one."""
        found = np.asarray(_value(target)).dtype
        self._all(found == getattr(expected_dtype, "numpy", expected_dtype), f"{found} is not {expected_dtype}")

    def assertNear(self, f1: Any, f2: Any, err: float, msg: str | None = None) -> None:
        """Fail unless two numbers differ by at most ``err``."""
        self._all(f1 == f2 or abs(f1 - f2) <= err, f"{f1} != {f2} +/- {err}. {msg or ''}")
