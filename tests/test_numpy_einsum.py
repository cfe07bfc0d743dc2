"""Einsum of two arrays by products of matrices is that of NumPy, whatever the equation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtape.xp.numpy_einsum import einsum_of_two

SIZES = {"a": 2, "b": 3, "c": 1, "d": 4, "e": 0}
terms = st.lists(st.sampled_from("abcde"), max_size=4).map("".join)


@st.composite
def equations(draw):
    x, y = draw(terms), draw(terms)
    kept = draw(st.lists(st.sampled_from(sorted(set(x + y))), unique=True)) if x + y else []
    return f"{x},{y}->{''.join(kept)}"


@given(equations(), st.sampled_from([np.float64, np.float32, np.int32, np.complex128]))
def test_any_equation(equation, dtype):
    rng = np.random.default_rng(len(equation))
    x, y = (rng.integers(-4, 5, [SIZES[c] for c in term]).astype(dtype) for term in equation.split("->")[0].split(","))
    found, wanted = einsum_of_two(x, y, equation), np.einsum(equation, x, y)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def test_axes_of_length_one_are_spread_and_others_refused():
    x, y = np.arange(3.0).reshape(1, 3), np.arange(8.0).reshape(2, 4)
    np.testing.assert_array_equal(einsum_of_two(x, y, "ij,ik->ijk"), np.einsum("ij,ik->ijk", x, y))
    for bad in ("ij,jk->ik", "ijk,jk->ik"):
        with pytest.raises(ValueError, match="operand"):
            einsum_of_two(x, y, bad)
