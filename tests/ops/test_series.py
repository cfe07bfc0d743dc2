"""Taylor series of every op: the coefficients are the derivatives that nested accumulators give."""

from __future__ import annotations

import numpy as np
import pytest
from test_forward import random_like, targets_of
from test_records import close, every, samples, tensors

from gradtape.autodiff import ForwardAccumulator, taylor
from gradtape.values import nest


def nested(f, x, v, order: int) -> list:
    """f and its derivatives along v by accumulators within accumulators, the slow way."""
    if not order:
        return [f(x)]
    with ForwardAccumulator(x, v) as accumulator:
        inner = nested(f, x, v, order - 1)
    return [*inner, accumulator.jvp(inner[-1], unconnected_gradients="zero")]


@every(lambda r: r.differentiable)
def test_series_equal_nested_accumulators(record):
    order = min(record.order + 1, 3)
    inputs = tensors(samples(record)[0])
    places = [i for i, t in enumerate(inputs) if t.dtype.is_floating]
    if not places or any(t._array.dtype.kind == "c" for t in (*inputs, *targets_of(record, inputs))):
        pytest.skip("real numbers only")
    x = [inputs[i] for i in places]
    v = random_like(x, np.random.default_rng(5))

    def f(moving):
        full = list(inputs)
        for i, t in zip(places, moving):
            full[i] = t
        return [t for t in nest.flatten(record.function(*full)) if t.dtype.is_trainable]

    for k, (received, wanted) in enumerate(zip(taylor(f, x, v, order), nested(f, x, v, order))):
        for a, b in zip(received, wanted):
            assert a.dtype == b.dtype
            close(a.numpy(), b.numpy(), 1e-9, f"derivative {k} of {record.id}")
