"""Records of gradtape/ops/attention.py, in its order."""

import functools

import numpy as np

from gradtape.ops import attention as ops
from gradtape.testing import OpRecord
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor

SIZES = (2, 2, 2, 2), (2, 3, 2, 2), (2, 3, 2, 3)
MASK = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]).reshape(1, 1, 2, 3)


def arrays(*shapes):
    return lambda rng: [tuple(rng.normal(size=shape) for shape in shapes)]


def by_definition(q, k, v, mask=None, causal=False):
    """Query by query, with a sum over the keys that it may see."""
    out = np.zeros((*q.shape[:3], v.shape[-1]), q.dtype)
    for example, place, head in np.ndindex(*q.shape[:3]):
        seen = [j for j in range(k.shape[1]) if (mask is None or mask[0, 0, place, j]) and not (causal and j > place)]
        powers = np.exp([q[example, place, head] @ k[example, j, head] * 0.7 for j in seen])
        out[example, place, head] = sum(p * v[example, j, head] for p, j in zip(powers / powers.sum(), seen))
    return out


def pulled(g, q, k, v, mask=None, causal=False):
    """The gradients by differences of the definition in the complex plane."""
    parts = []
    for i, x in enumerate((q, k, v)):
        part = np.zeros_like(x)
        for index in np.ndindex(*x.shape):
            moved = [y.astype(complex) for y in (q, k, v)]
            moved[i][index] += 1e-30j
            part[index] = (by_definition(*moved, mask, causal).imag * g).sum() / 1e-30
        parts.append(part)
    return tuple(parts)


def _cases(name, function, shapes, reference):
    for causal, mask in ((False, None), (True, None), (True, MASK), (False, MASK)):
        given = [] if mask is None else [mask]

        def call(*xs, causal=causal, given=given):
            masks = [convert_to_tensor(mask, dtypes.as_dtype(xs[0].dtype)) for mask in given]
            return function(*xs, *masks, scale=0.7, causal=causal)

        yield OpRecord(
            name, call, arrays(*shapes), functools.partial(reference, mask=mask, causal=causal),
            case=f"{'causal' if causal else 'all'}{' masked' if given else ''}", empties=list,
        )  # fmt: skip


RECORDS = [
    *_cases("attention", ops.attention, SIZES, by_definition),
    *_cases("attention_gradient", ops.attention_gradient, ((2, 2, 2, 3), *SIZES), pulled),
]
