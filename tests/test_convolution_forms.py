"""Convolutions as XLA has them and as matrix products: whatever the shapes, they give what NumPy gives."""

import numpy as np
import pytest

from gradtape.xp import numpy as NUMPY

pytest.importorskip("jax")

SEEDS, EACH = range(5), 24


def drawn(generator):
    """Shapes and attributes of a convolution: examples, lengths, channels in and out, and how the filter moves."""
    n = int(generator.integers(1, 4))
    draw = lambda low, high: tuple(int(i) for i in generator.integers(low, high, n))
    size, strides, dilations = draw(1, 4), draw(1, 3) if generator.random() < 0.4 else (1,) * n, draw(1, 3)
    padding = tuple((int(a), int(b)) for a, b in generator.integers(0, 3, (n, 2)))
    free = [(k - 1) * d + 1 - sum(p) for k, d, p in zip(size, dilations, padding)]
    lengths = tuple(max(1, m) + int(generator.integers(0, 4)) for m in free)
    inner, outer = (int(generator.choice([1, 2, 4, 12])) for _ in range(2))
    groups = inner if inner > 1 and generator.random() < 0.2 else 1
    attributes = {"strides": strides, "padding": padding, "dilations": dilations, "groups": groups}
    outer = groups if groups > 1 else outer
    return (int(generator.choice([1, 3, 6])), *lengths, inner), (*size, inner // groups, outer), attributes


def convolutions(seed):
    """Shapes, attributes, and a source of numbers for each."""
    generator = np.random.default_rng(seed)
    for _ in range(EACH):
        yield *drawn(generator), np.random.default_rng(seed)


def cases(seed):
    """Calls of the three functions: name, arguments, attributes and what NumPy gives."""
    for x_shape, w_shape, attributes, numbers in convolutions(seed):
        x, w = numbers.normal(size=x_shape), numbers.normal(size=w_shape)
        result = NUMPY.conv(x, w, **attributes)
        g = numbers.normal(size=result.shape)
        yield "conv", (x, w), attributes, result
        lengths, size = x_shape[1:-1], w_shape[:-2]
        yield "conv_input", (g, w), {"lengths": lengths, **attributes}, NUMPY.conv_input(g, w, lengths=lengths, **attributes)
        yield "conv_filter", (x, g), {"size": size, **attributes}, NUMPY.conv_filter(x, g, size=size, **attributes)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_form_gives_what_numpy_gives(seed, compiled_quickly):
    import jax

    from gradtape.xp import jax as JAX

    calls = list(cases(seed))
    with JAX.scope():
        run = lambda inputs: [getattr(JAX, name)(*x, **attributes) for x, (name, _, attributes, _) in zip(inputs, calls)]
        results = jax.jit(run, compiler_options=compiled_quickly)([arguments for _, arguments, _, _ in calls])
    for (name, arguments, attributes, expected), result in zip(calls, results, strict=True):
        what = f"{name} of {[a.shape for a in arguments]}, {attributes}"
        np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-10, err_msg=what)


def form_of(x_shape, w_shape, of=None, **attributes):
    import jax

    from gradtape.xp import jax_conv

    x, w = (jax.ShapeDtypeStruct(shape, np.float32) for shape in (x_shape, w_shape))
    return jax_conv._form(x, w, of, **attributes).__name__


def test_the_shapes_lead_to_every_form():
    chosen = set()
    for seed in SEEDS:
        for x_shape, w_shape, attributes, _ in convolutions(seed):
            chosen |= {(of, form_of(x_shape, w_shape, of, **attributes)) for of in (None, "input", "filter")}
    everywhere = {"_conv", "_of_windows", "_of_shares", "_depthwise"}
    assert chosen == {(of, name) for of in (None, "input", "filter") for name in everywhere} | {("filter", "_filter_by_place")}


def test_large_windows_are_not_made():
    """What does not fit the caches is left to XLA."""
    attributes = {"strides": (1, 1), "padding": ((1, 1), (1, 1)), "dilations": (1, 1), "groups": 1}
    assert form_of((32, 32, 32, 3), (3, 3, 3, 32), **attributes) == "_of_windows"
    assert form_of((512, 32, 32, 3), (3, 3, 3, 32), **attributes) == "_conv"


def test_how_to_compile_is_the_users_choice_and_that_of_the_version(monkeypatch):
    import jaxlib

    from gradtape.xp import jax_devices

    if jax_devices.jax.default_backend() != "cpu":
        pytest.skip("the option is one for CPUs")
    options = jax_devices.compiler_options.__wrapped__
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setattr(jaxlib.version, "__version_info__", (0, 10, 2))
    assert list(options()) == ["xla_cpu_experimental_ynn_fusion_type"]
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_experimental_ynn_fusion_type=")
    assert options() is None
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    assert options() is not None
    monkeypatch.setattr(jaxlib.version, "__version_info__", (0, 8, 0))
    assert options() is None
