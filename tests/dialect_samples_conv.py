"""Sample arguments for the convolution functions of the array dialect."""

from __future__ import annotations

# size of input, size of filter, strides, padding, dilations, groups; channels are 4 → 6 over all groups
FORMS = [
    ((7, 6), (3, 2), (1, 1), ((1, 1), (0, 1)), (1, 1), 1),
    ((7, 6), (3, 2), (2, 3), ((0, 0), (0, 0)), (1, 1), 1),
    ((7, 6), (3, 2), (1, 1), ((2, 1), (0, 3)), (2, 2), 1),
    ((7, 6), (3, 2), (2, 1), ((1, 0), (0, 1)), (1, 1), 2),
    ((5,), (3,), (2,), ((1, 1),), (1,), 1),
    ((5,), (1,), (1,), ((0, 0),), (1,), 1),
    ((4, 3, 5), (2, 2, 2), (1, 2, 1), ((0, 1), (1, 1), (0, 0)), (1, 1, 2), 1),
    ((5,), (3,), (1,), ((1, 1),), (1,), 4),  # depthwise
    ((2,), (3,), (1,), ((0, 0),), (1,), 1),  # no position
]


def add_convolutions(add, floats, integers):
    """Add samples with the maker of the table."""
    for lengths, size, strides, padding, dilations, groups in FORMS:
        outputs = 8 if groups == 4 else 6
        counts = tuple(
            max(0, (n + low + high - (k - 1) * d - 1) // s + 1)
            for n, (low, high), k, d, s in zip(lengths, padding, size, dilations, strides)
        )
        where = {"strides": strides, "padding": padding, "dilations": dilations, "groups": groups}
        x, w, g = (2, *lengths, 4), (*size, 4 // groups, outputs), (2, *counts, outputs)
        tolerance = 1e-11
        add("conv", floats(*x), floats(*w), tolerance=tolerance, **where)
        if 0 not in counts:
            add("conv_input", floats(*g), floats(*w), tolerance=tolerance, lengths=lengths, **where)
            add("conv_filter", floats(*x), floats(*g), tolerance=tolerance, size=size, **where)
        same = {"strides": strides, "dilations": dilations}
        add("windows", floats(*x), size=size, **same)
        free = tuple(max(0, (n - (k - 1) * d - 1) // s + 1) for n, k, d, s in zip(lengths, size, dilations, strides))
        add("windows_transpose", floats(2, *free, *size, 4), lengths=lengths, **same)
    one = {"strides": (1,), "padding": ((1, 1),), "dilations": (1,), "groups": 1}
    for dtype, tolerance in (("float32", 1e-5), ("float16", 4e-3)):
        add("conv", floats(2, 5, 3, dtype=dtype), floats(3, 3, 2, dtype=dtype), tolerance=tolerance, **one)
    add("conv", integers(2, 5, 3), integers(3, 3, 2), **one)
    add("windows", integers(2, 5, 3), size=(2,), strides=(2,), dilations=(1,))
