"""The sparsity pattern of every op covers its Jacobian, at every sample and whatever the numbers are."""

from __future__ import annotations

import numpy as np
from test_records import every, floating_sources, samples, tensors

import gradtape as tf
from gradtape.derivatives.sparsity import propagate
from gradtape.values import nest


@every(lambda r: r.differentiable)
def test_the_pattern_covers_the_jacobian(record):
    for arrays in samples(record)[:2]:
        inputs = tensors(arrays)
        sources = floating_sources(inputs)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(sources)
            targets = [t for t in nest.flatten(record.function(*inputs)) if t.dtype.is_trainable]
        for target in targets:
            for source in sources:
                pattern = propagate(tape.records, source, target).toarray()
                dense = tape.jacobian(target, source, unconnected_gradients="zero", mode="reverse").numpy()
                assert pattern.shape == (target._array.size, source._array.size)
                assert pattern.dtype == bool
                missed = (dense.reshape(pattern.shape) != 0) & ~pattern
                assert not missed.any(), f"{record.id}: {np.argwhere(missed)[0]} of {pattern.shape}"
