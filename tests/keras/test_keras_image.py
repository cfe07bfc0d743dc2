"""`keras.ops.image` on gradtape beyond Keras's own tests: derivatives, compiled = eager, half precision, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradtape as tf
from gradtape import keras
from gradtape.testing import check_gradients

image = keras.ops.image
RESIZES = ["nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"]
MODES = ["constant", "nearest", "wrap", "mirror", "reflect"]
lengths = st.integers(1, 12)


def pixels(*shape: int) -> np.ndarray:
    """Values in (0, 1) that differ by enough for a numerical derivative."""
    count = int(np.prod(shape))
    return (np.random.default_rng(count).permutation(count) + 0.5).reshape(shape) / count


X = pixels(1, 3, 4, 3)
GREY = pixels(2, 3, 4, 1)
MAP = np.array([0.9, 0.13, 0.31, -0.17, 1.07, 0.23, 0.011, 0.017])  # no place on a grid line
MAPS = np.stack([MAP, MAP / 2])
CORNERS = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0], [4.0, 3.0]])
MOVED = CORNERS + np.array([[0.31, 0.17], [-0.23, 0.41], [0.13, -0.37], [-0.11, 0.29]])
PLACES = np.array([[0.3, 1.7, 4.6, -0.8], [0.4, 2.2, -1.3, 3.1]])

# Name: function, arguments that it is differentiated by
CASES = {
    **{f"resize {how}": (lambda x, how=how: image.resize(x, (3, 7), how), [GREY]) for how in RESIZES},
    "resize antialias": (lambda x: image.resize(x, (2, 2), "bicubic", antialias=True), [GREY]),
    "resize crop": (lambda x: image.resize(x, (5, 3), crop_to_aspect_ratio=True), [GREY]),
    "resize pad": (lambda x: image.resize(x, (5, 3), pad_to_aspect_ratio=True, fill_value=0.5), [GREY]),
    "grayscale": (image.rgb_to_grayscale, [X]),
    "hsv": (image.rgb_to_hsv, [X]),
    "rgb": (lambda x: image.hsv_to_rgb(2.3 * x - 0.5), [X]),
    **{f"affine {mode}": (lambda x, t, mode=mode: image.affine_transform(x, t, fill_mode=mode), [GREY, MAPS])
       for mode in MODES},
    "perspective": (lambda x, s, e: image.perspective_transform(x, s, e, fill_value=0.2), [GREY, CORNERS[None], MOVED[None]]),
    "map_coordinates": (lambda x, c: image.map_coordinates(x, c, 1, "reflect"), [X[0, :, :, 0], PLACES]),
    "gaussian_blur": (lambda x, s: image.gaussian_blur(x, (3, 4), s), [GREY, np.array([0.7, 1.3])]),
    "sobel_edges": (image.sobel_edges, [GREY]),
    **{f"scale_and_translate {how}": (
        lambda x, s, t, how=how: image.scale_and_translate(x, (2, 5, 3, 1), s, t, (1, 2), how),
        [GREY, np.array([1.3, 0.7]), np.array([0.21, -0.13])],
    ) for how in ("linear", "cubic", "lanczos3")},
    "elastic": (lambda x: image.elastic_transform(x, 1.0, 0.8, seed=3), [GREY]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name):
    function, arguments = CASES[name]
    check_gradients(function, arguments, order=1)


QUICK = ("resize pad", "affine reflect", "gaussian_blur", "scale_and_translate cubic")


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES])
def test_compiled_is_eager(name):
    pytest.importorskip("jax")
    function, arguments = CASES[name]
    arguments = [tf.constant(a) for a in arguments]

    def value_and_gradients(*arguments):
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            out = function(*arguments)
        return out, tape.gradient(out, arguments)

    for eager, compiled in zip(tf.nest.flatten(value_and_gradients(*arguments)),
                               tf.nest.flatten(tf.function(value_and_gradients)(*arguments))):  # fmt: skip
        np.testing.assert_allclose(compiled, eager, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", [name for name in CASES if name not in ("hsv", "rgb")])  # a hue may turn by a rounding
def test_half_precision_is_close(name, dtype):
    function, arguments = CASES[name]
    half = [keras.ops.cast(a, dtype) for a in arguments]
    out = function(*half)
    assert out.dtype.name == dtype
    same = function(*(keras.ops.cast(a, "float32") for a in half))
    np.testing.assert_allclose(keras.ops.cast(out, "float32"), same, atol=2e-2 if dtype == "bfloat16" else 3e-3)


# Against jax, which compiles a program for each example


@settings(max_examples=6)
@given(st.tuples(lengths, lengths), st.tuples(lengths, lengths), st.sampled_from(RESIZES), st.booleans())
def test_resize_is_that_of_jax(old, new, method, antialias):
    jax = pytest.importorskip("jax")
    x = pixels(*old, 2).astype(np.float32)
    expected = jax.image.resize(x, (*new, 2), method, antialias)
    np.testing.assert_allclose(image.resize(x, new, method, antialias), expected, atol=2e-5)


@settings(max_examples=6)
@given(
    st.lists(lengths, min_size=1, max_size=3), st.sampled_from(MODES), st.integers(0, 1), st.integers(0, 99),
    st.sampled_from(["float32", "int32", "uint8"]),
)  # fmt: skip
def test_map_coordinates_is_that_of_jax(shape, mode, order, seed, dtype):
    jax = pytest.importorskip("jax")
    ndimage = pytest.importorskip("jax.scipy.ndimage")
    x = (100 * pixels(*shape)).astype(dtype)
    rng = np.random.default_rng(seed)
    places = rng.integers(-40, 40, (len(shape), 9)).astype(np.float32) / 4  # many on points, and halfway between them
    with jax.enable_x64(False):
        expected = ndimage.map_coordinates(x, list(places), order, mode, 3)
    out = image.map_coordinates(x, places, order, mode, 3)
    assert out.dtype == expected.dtype
    np.testing.assert_allclose(out, expected, atol=1e-3)


# Meaning


def test_the_projective_map_is_the_documented_one():
    x = pixels(6, 7, 1)
    a0, a1, a2, b0, b1, b2, c0, c1 = MAP
    out = image.affine_transform(x, MAP, fill_value=9.0)
    column, row = 3, 2
    k = c0 * column + c1 * row + 1
    place = np.array([[b0 * column + b1 * row + b2], [a0 * column + a1 * row + a2]]) / k
    expected = image.map_coordinates(x[:, :, 0], place, 1, fill_value=9.0)
    np.testing.assert_allclose(out[row, column], expected)


def test_a_horizon_in_the_picture_is_filled():
    """Where k = 0 a place is infinitely far away."""
    out = image.affine_transform(np.ones((1, 3, 1)), [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, -1.0, 0.0], fill_value=5.0)
    assert out[0, 1, 0] == 5.0


def test_perspective_takes_the_start_to_the_end():
    x = pixels(1, 9, 9, 1)
    start = np.array([[[1.0, 2.0], [6.0, 1.0], [2.0, 7.0], [7.0, 6.0]]])
    end = np.array([[[0.0, 0.0], [8.0, 0.0], [0.0, 8.0], [8.0, 8.0]]])
    out = image.perspective_transform(x, start, end).numpy()
    for (x0, y0), (x1, y1) in zip(start[0].astype(int), end[0].astype(int)):
        np.testing.assert_allclose(out[0, y1, x1, 0], x[0, y0, x0, 0], atol=1e-9)


def test_channels_first_is_channels_last_transposed():
    x = pixels(2, 4, 5, 3).astype(np.float32)
    first = np.moveaxis(x, -1, 1)
    calls = {
        "resize": lambda v, f: image.resize(v, (3, 6), data_format=f),
        "affine": lambda v, f: image.affine_transform(v, MAP.astype("float32"), data_format=f),
        "blur": lambda v, f: image.gaussian_blur(v, (3, 5), (0.5, 2.0), data_format=f),
        "elastic": lambda v, f: image.elastic_transform(v, sigma=1.0, seed=1, data_format=f),
        "hsv": lambda v, f: image.hsv_to_rgb(image.rgb_to_hsv(v, data_format=f), data_format=f),
        "gray": lambda v, f: image.rgb_to_grayscale(v, data_format=f),
        "perspective": lambda v, f: image.perspective_transform(v, CORNERS, MOVED, data_format=f),
    }
    for name, call in calls.items():
        last = call(x, "channels_last").numpy()
        np.testing.assert_allclose(np.moveaxis(call(first, "channels_first"), 1, -1), last, atol=1e-5, err_msg=name)


def test_displacements_down_and_across_differ():
    """The same noise in both directions would move everything along a diagonal."""
    ramp = np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0), indexing="ij"), -1)
    moved = image.elastic_transform(ramp, alpha=3.0, sigma=1.0, fill_mode="nearest", seed=0).numpy() - ramp
    assert abs(np.corrcoef(moved[4:-4, 4:-4, 0].ravel(), moved[4:-4, 4:-4, 1].ravel())[0, 1]) < 0.5


# Bad input

BAD = {
    "rank": (lambda: image.gaussian_blur(np.ones((4, 4))), "Invalid images rank"),
    "interpolation": (lambda: image.resize(np.ones((4, 4, 1)), (2, 2), "area"), "Invalid value for argument `interpolation`"),
    "fill mode": (lambda: image.affine_transform(np.ones((4, 4, 1)), MAP, fill_mode="edge"), "argument `fill_mode`"),
    "transforms": (lambda: image.affine_transform(np.ones((3, 4, 4, 1)), np.stack([MAP, MAP])), "2 transforms for 3 images"),
    "points": (lambda: image.perspective_transform(np.ones((4, 4, 1)), CORNERS[:3], MOVED[:3]), "Invalid start_points shape"),
    "order": (lambda: image.map_coordinates(np.ones(3), np.ones((1, 2)), 3), "argument `order`"),
    "coordinates": (lambda: image.map_coordinates(np.ones(3), np.ones((2, 2)), 1), "must be the same as the rank"),
    "method": (lambda: image.scale_and_translate(np.ones((3, 3)), (3, 3), [1.0], [0.0], (0,), "area"), "argument `method`"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, text = BAD[name]
    with pytest.raises(ValueError, match=text):
        call()
