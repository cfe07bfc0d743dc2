"""`tf.image` beyond the recorded calls: properties, derivatives of order 2, other storage, files, chance."""

from __future__ import annotations

import builtins
import io
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradtape as tf
from gradtape.ops import image_quality, image_resize
from gradtape.testing import check_gradients
from gradtape.values import dtypes

METHODS = [value for name, value in vars(tf.image.ResizeMethod).items() if name.isupper()]
RNG = np.random.default_rng(0)
lengths = st.integers(1, 20)


def pixels(*shape: int) -> np.ndarray:
    """Values in (0, 1) that differ by enough for a numerical derivative."""
    count = int(np.prod(shape))
    return (np.random.default_rng(count).permutation(count) + 0.5).reshape(shape) / count


# Resizing


@given(lengths, lengths, st.sampled_from(METHODS), st.booleans())
def test_a_flat_image_stays_flat(old, new, method, antialias):
    out = tf.image.resize(np.full((old, 3, 1), 7.0, np.float32), [new, 5], method=method, antialias=antialias)
    np.testing.assert_allclose(out, np.full((new, 5, 1), 7.0), rtol=1e-6)


@given(lengths, lengths, st.sampled_from([m for m in METHODS if m != "nearest"]), st.booleans())
def test_resizing_a_mirror_image_gives_the_mirror_image(old, new, method, antialias):
    x = pixels(old, 2, 1).astype(np.float32)
    out, mirrored = (tf.image.resize(v, [new, 2], method=method, antialias=antialias).numpy() for v in (x, x[::-1]))
    # Ties in the rounding of TensorFlow's table of bicubic weights go to the even place: 1/2048 of a pixel.
    np.testing.assert_allclose(mirrored, out[::-1], atol=2e-3 if method == "bicubic" else 1e-5)


@given(lengths, lengths, lengths, lengths, st.sampled_from(METHODS), st.booleans())
def test_the_transpose_of_resizing_is_its_gradient(rows, columns, height, width, method, antialias):
    x = tf.constant(pixels(rows, columns, 1).astype(np.float32))
    weights = pixels(height, width, 1).astype(np.float32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        target = tf.reduce_sum(tf.image.resize(x, [height, width], method, antialias=antialias) * weights)
    gradient = tape.gradient(target, x)
    np.testing.assert_allclose(np.sum(gradient * x), target, rtol=1e-4, atol=1e-4)


def test_a_batch_is_resized_as_its_images():
    x = pixels(3, 5, 6, 2).astype(np.float32)
    for method in METHODS:
        whole = tf.image.resize(x, [4, 9], method=method)
        np.testing.assert_array_equal(whole, [tf.image.resize(v, [4, 9], method=method) for v in x])


@pytest.mark.parametrize("method", METHODS)
def test_a_nan_stays_where_it_is(method):
    x = np.zeros((1, 40, 1), np.float32)
    x[0, 0] = np.nan
    out = tf.image.resize(x, [1, 60], method=method).numpy()
    assert np.isnan(out).any()
    assert not np.isnan(out[0, 12:]).any()
    variable = tf.Variable(np.ones((1, 60, 1), np.float32))
    with tf.GradientTape() as tape:
        target = tf.image.resize(variable, [1, 40], method=method) * x
    gradient = tape.gradient(target, variable).numpy()
    assert np.isnan(gradient).any()
    assert not np.isnan(gradient[0, 12:]).any()


# Derivatives: what computes in float32 is run in float64 here

COLOURS = {
    "rgb_to_hsv": tf.image.rgb_to_hsv,
    "hsv_to_rgb": tf.image.hsv_to_rgb,
    "rgb_to_grayscale": tf.image.rgb_to_grayscale,
    "rgb_to_yuv": tf.image.rgb_to_yuv,
    "yiq_to_rgb": tf.image.yiq_to_rgb,
    "adjust_contrast": lambda x: tf.image.adjust_contrast(x, 1.7),
    "adjust_hue": lambda x: tf.image.adjust_hue(x, 0.3),
    "adjust_saturation": lambda x: tf.image.adjust_saturation(x, 0.6),
    "adjust_gamma": lambda x: tf.image.adjust_gamma(x, 1.3, 2.0),
    "adjust_brightness": lambda x: tf.image.adjust_brightness(x, 0.3),
    "total_variation": tf.image.total_variation,
    "rot90": tf.image.rot90,
}


@pytest.mark.parametrize("name", COLOURS)
def test_second_order(name):
    check_gradients(COLOURS[name], [pixels(2, 2, 3)])


def test_factors_have_gradients_too():
    x = pixels(2, 2, 3)
    check_gradients(lambda f: tf.image.adjust_contrast(x, f), [1.5])
    check_gradients(lambda f: tf.image.adjust_saturation(x, f), [0.5])
    check_gradients(lambda f: tf.image.adjust_hue(x, f), [0.17], order=1)
    check_gradients(lambda g: tf.image.adjust_gamma(x, g), [1.5])


@pytest.fixture
def in_float64(monkeypatch):
    wide = SimpleNamespace(**{**vars(dtypes), "float32": dtypes.float64})
    for module in (image_quality, image_resize):
        monkeypatch.setattr(module, "dtypes", wide)


MEASURES = {
    "ssim": (lambda x, y: tf.image.ssim(x, y, 1.0, filter_size=3), [pixels(4, 5, 1), pixels(4, 5, 1)[::-1].copy()]),
    "ssim_multiscale": (
        lambda x, y: tf.image.ssim_multiscale(x, y, 1.0, [0.6, 0.4], filter_size=2),
        [pixels(4, 5, 1), pixels(4, 5, 1) ** 1.1],
    ),
    "psnr": (lambda x, y: tf.image.psnr(x, y, 1.0), [pixels(2, 2, 1), pixels(2, 2, 1)[::-1].copy()]),
    "per_image_standardization": (tf.image.per_image_standardization, [5 * pixels(2, 3, 1)]),
    "sobel_edges": (tf.image.sobel_edges, [pixels(1, 2, 3, 1)]),
    "crop_and_resize": (
        lambda x, boxes: tf.image.crop_and_resize(x, boxes, [1, 0], [2, 3]),
        [pixels(2, 4, 4, 1), np.array([[0.11, 0.21, 0.87, 0.71], [-0.2, 0.13, 0.64, 1.29]])],
    ),
    "resize": (lambda x: tf.image.resize(x, [3, 2], "bicubic") ** 2, [pixels(2, 3, 1)]),
}


@pytest.mark.usefixtures("in_float64")
@pytest.mark.parametrize("name", MEASURES)
def test_second_order_of_measures(name):
    function, arguments = MEASURES[name]
    check_gradients(function, arguments)


# Other storage: jax arrays, and the batched sweep of a Jacobian

FUNCTIONS = {
    **{name: COLOURS[name] for name in ("rgb_to_hsv", "hsv_to_rgb", "adjust_hue", "adjust_saturation", "adjust_contrast")},
    "resize": lambda x: tf.image.resize(x, [3, 5], antialias=True),
    "crop_and_resize": lambda x: tf.image.crop_and_resize(x[None], [[0.1, 0.2, 0.8, 0.9]], [0], [2, 2]),
    "ssim": lambda x: tf.image.ssim(x, 1 - x, 1.0, filter_size=2),
    "flip": tf.image.flip_left_right,
    "standardization": tf.image.per_image_standardization,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jax_arrays_give_the_same(name):
    jnp = pytest.importorskip("jax.numpy")
    x = pixels(4, 4, 3).astype(np.float32)
    results = []
    for value in (tf.constant(x), tf.convert_to_tensor(jnp.asarray(x))):
        with tf.GradientTape() as tape:
            tape.watch(value)
            out = FUNCTIONS[name](value)
            target = out * out
        results.append((out, tape.gradient(target, value)))
    for ours, theirs in zip(*results):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5)  # float32 sums in another order


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_jacobian_in_one_sweep_is_the_looped_one(name):
    x = tf.constant(pixels(3, 3, 3).astype(np.float32))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        out = FUNCTIONS[name](x)
    swept, looped = (tape.jacobian(out, x, experimental_use_pfor=pfor) for pfor in (True, False))
    np.testing.assert_allclose(swept, looped, rtol=1e-5, atol=1e-6)


# Colours


@given(st.lists(st.floats(0, 1, width=32), min_size=3, max_size=3))
def test_hsv_and_back(colour):
    x = np.array(colour, np.float32)
    np.testing.assert_allclose(tf.image.hsv_to_rgb(tf.image.rgb_to_hsv(x)), x, atol=1e-5)


@given(st.lists(st.floats(0, 1, width=32), min_size=3, max_size=3))
def test_adjustments_that_change_nothing(colour):
    x = np.array(colour, np.float32).reshape(1, 1, 3)
    for same in (
        tf.image.adjust_hue(x, 0.0), tf.image.adjust_hue(x, 1.0), tf.image.adjust_saturation(x, 1.0),
        tf.image.adjust_contrast(x, 0.3), tf.image.adjust_brightness(x, 0.0), tf.image.adjust_gamma(x),
    ):  # fmt: skip
        np.testing.assert_allclose(same, x, atol=1e-5)
    for back in (tf.image.yuv_to_rgb(tf.image.rgb_to_yuv(x)), tf.image.yiq_to_rgb(tf.image.rgb_to_yiq(x))):
        np.testing.assert_allclose(back, x, atol=2e-4)  # the matrices of the standards are inverse to four digits


@pytest.mark.parametrize("narrow", ["uint8", "uint16", "int8", "int16"])
def test_integers_survive_a_trip_to_floats(narrow):
    x = np.arange(0, np.iinfo(narrow).max + 1, dtype=np.int64).astype(narrow)
    wide = tf.image.convert_image_dtype(x, tf.float32)
    np.testing.assert_array_equal(tf.image.convert_image_dtype(wide, narrow, saturate=True), x)


# Measures and boxes


def test_ssim_against_the_definition():
    x, y = pixels(6, 6, 1)[..., 0], pixels(6, 6, 1)[::-1, :, 0]
    places = np.arange(4) - 1.5
    bell = np.exp(-np.add.outer(places**2, places**2) / (2 * 1.5**2))
    bell /= bell.sum()
    values = []
    for i in range(3):
        for j in range(3):
            a, b = x[i : i + 4, j : j + 4], y[i : i + 4, j : j + 4]
            mean_a, mean_b = (bell * a).sum(), (bell * b).sum()
            both = (bell * (a - mean_a) * (b - mean_b)).sum()
            own = (bell * (a - mean_a) ** 2).sum() + (bell * (b - mean_b) ** 2).sum()
            light = (2 * mean_a * mean_b + 1e-4) / (mean_a**2 + mean_b**2 + 1e-4)
            values.append(light * (2 * both + 9e-4) / (own + 9e-4))
    ours = tf.image.ssim(x[..., None].astype("f4"), y[..., None].astype("f4"), 1.0, filter_size=4)
    np.testing.assert_allclose(ours, np.mean(values), rtol=1e-4)


@given(st.integers(0, 100), st.floats(0.1, 0.9))
def test_suppression_keeps_the_best_and_nothing_that_overlaps(seed, threshold):
    rng = np.random.default_rng(seed)
    boxes, scores = rng.uniform(size=(15, 4)).astype(np.float32), rng.uniform(size=15).astype(np.float32)
    kept = tf.image.non_max_suppression(boxes, scores, 15, threshold).numpy().tolist()

    def overlap(i, j):
        low, high = np.sort(boxes[[i, j]].reshape(2, 2, 2), axis=1).swapaxes(0, 1)
        common = np.maximum(high.min(0) - low.max(0), 0).prod()
        return common / ((high - low).prod(1).sum() - common)

    assert kept == sorted(kept, key=lambda i: -scores[i])
    assert kept[0] == scores.argmax()
    for i in range(15):
        better = [j for j in kept if scores[j] > scores[i]]
        assert (i in kept) == all(overlap(i, j) <= threshold for j in better)


# Files


@given(st.integers(1, 4), st.integers(1, 7), st.integers(1, 7), st.integers(-1, 9), st.integers(0, 9))
def test_png_files_are_exact(channels, rows, columns, compression, seed):
    image = np.random.default_rng(seed).integers(0, 256, (rows, columns, channels), np.uint8)
    np.testing.assert_array_equal(tf.image.decode_png(tf.image.encode_png(image, compression)), image)
    deep = image[..., :1].astype(np.uint16) * 200 + 7
    np.testing.assert_array_equal(tf.image.decode_png(tf.image.encode_png(deep), dtype=tf.uint16), deep)
    wide = image.astype(np.uint16) * 256 + 7
    np.testing.assert_array_equal(tf.image.decode_png(tf.image.encode_png(wide)), image)


def smooth(*shape: int) -> np.ndarray:
    return np.round(sum(np.sin(axis / 5 + 1) for axis in np.indices(shape)) * 30 + 128).astype(np.uint8)


def test_jpeg_files_are_close():
    image = smooth(33, 26, 3)
    encoded = tf.image.encode_jpeg(image, quality=98, chroma_downsampling=False)
    assert tf.image.is_jpeg(encoded)
    assert tf.image.extract_jpeg_shape(encoded).numpy().tolist() == [33, 26, 3]
    decoded = tf.image.decode_jpeg(encoded).numpy().astype(int)
    assert np.abs(decoded - image).max() <= 6  # JPEG is lossy: quantization of smooth data at quality 98
    np.testing.assert_array_equal(tf.image.decode_image(encoded), decoded)
    np.testing.assert_array_equal(tf.image.decode_and_crop_jpeg(encoded, [3, 4, 10, 11]), decoded[3:13, 4:15])
    for ratio in (2, 4, 8):
        reduced = tf.image.decode_jpeg(encoded, ratio=ratio).numpy().astype(int)
        assert reduced.shape == (-(-33 // ratio), -(-26 // ratio), 3)
    grey = tf.image.decode_jpeg(encoded, channels=1).numpy().astype(int)
    assert np.abs(grey - tf.image.rgb_to_grayscale(decoded.astype(np.uint8)).numpy()).max() <= 2
    small, large = (len(tf.image.encode_jpeg(image, quality=q).numpy()) for q in (10, 95))
    assert small < large


def test_a_file_that_was_cut_off():
    encoded = tf.image.encode_jpeg(RNG.integers(0, 256, (32, 32, 3), np.uint8)).numpy()[:900]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid JPEG data"):
        tf.image.decode_jpeg(encoded)
    assert tf.image.decode_jpeg(encoded, try_recover_truncated=True).shape == (32, 32, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid PNG data"):
        tf.image.decode_png(tf.image.encode_png(RNG.integers(0, 256, (32, 32, 3), np.uint8)).numpy()[:900])


def test_animations_and_other_formats():
    from PIL import Image

    frames = [Image.new("RGB", (4, 3), colour) for colour in ("red", "blue")]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    expected = np.stack([np.asarray(frame) for frame in frames])
    np.testing.assert_array_equal(tf.image.decode_gif(file.getvalue()), expected)
    np.testing.assert_array_equal(tf.image.decode_image(file.getvalue()), expected)
    np.testing.assert_array_equal(tf.image.decode_image(file.getvalue(), expand_animations=False), expected[0])
    image = smooth(5, 6, 3)
    for name, decode in (("BMP", tf.image.decode_bmp), ("WEBP", tf.image.decode_webp)):
        file = io.BytesIO()
        Image.fromarray(image).save(file, name, lossless=True)
        np.testing.assert_array_equal(decode(file.getvalue()), image)
        np.testing.assert_array_equal(tf.image.decode_image(file.getvalue()), image)
    palette = io.BytesIO()
    Image.fromarray(image).quantize(4).save(palette, "PNG")
    assert tf.image.decode_png(palette.getvalue()).shape == (5, 6, 3)


def test_without_pillow_the_error_says_what_to_install(monkeypatch):
    original = builtins.__import__

    def refuse(name, *rest, **options):
        if name.partition(".")[0] == "PIL":
            raise ImportError(name)
        return original(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r'pip install "gradtape\[image\]"'):
        tf.image.encode_png(np.zeros((1, 1, 3), np.uint8))


# Chance

IMAGE = pixels(4, 5, 3).astype(np.float32)
RANDOM = {
    "flip_left_right": (), "flip_up_down": (), "brightness": (0.3,), "contrast": (0.2, 1.8), "hue": (0.4,),
    "saturation": (0.2, 1.8), "crop": ([2, 3, 3],),
}  # fmt: skip


@pytest.mark.parametrize("name", RANDOM)
def test_seeds_decide(name):
    stateful, stateless = getattr(tf.image, f"random_{name}"), getattr(tf.image, f"stateless_random_{name}")
    series = []
    for _ in range(2):
        tf.random.set_seed(5)
        series.append([stateful(IMAGE, *RANDOM[name]).numpy() for _ in range(12)])
    np.testing.assert_array_equal(*series)
    assert any((a != series[0][0]).any() for a in series[0])
    drawn = [stateless(IMAGE, *RANDOM[name], seed=[i, 7]).numpy() for i in range(12)]
    np.testing.assert_array_equal(drawn, [stateless(IMAGE, *RANDOM[name], seed=[i, 7]).numpy() for i in range(12)])
    assert any((a != drawn[0]).any() for a in drawn)


def test_a_crop_is_a_part():
    image = np.arange(60).reshape(4, 5, 3)
    corners = set()
    for i in range(60):
        out = tf.image.stateless_random_crop(image, [2, 3, 3], seed=[i, 0]).numpy()
        row, column = divmod(int(out[0, 0, 0]) // 3, 5)
        corners.add((row, column))
        np.testing.assert_array_equal(out, image[row : row + 2, column : column + 3])
    assert len(corners) == 9


def test_each_image_of_a_batch_is_flipped_by_itself():
    batch = np.broadcast_to(IMAGE, (40, *IMAGE.shape))
    out = tf.image.stateless_random_flip_left_right(batch, seed=[1, 2]).numpy()
    flipped = [(one == IMAGE[:, ::-1]).all() for one in out]
    assert 8 < sum(flipped) < 32
    assert all((one == IMAGE).all() for one, turned in zip(out, flipped) if not turned)


def test_gradients_flow_through_chance():
    x = tf.constant(IMAGE)
    with tf.GradientTape() as tape:
        tape.watch(x)
        out = tf.image.stateless_random_crop(tf.image.stateless_random_flip_up_down(x, [1, 2]), [2, 2, 3], [3, 4])
    assert tape.gradient(out, x).numpy().sum() == 12


@given(st.integers(0, 200))
def test_distorted_boxes_keep_their_promises(seed):
    boxes = np.array([[[0.2, 0.3, 0.7, 0.9]]], np.float32)
    begin, size, box = tf.image.stateless_sample_distorted_bounding_box(
        [40, 60, 3], boxes, [seed, 1], min_object_covered=0.5, aspect_ratio_range=(0.5, 2.0), area_range=(0.2, 0.9)
    )
    (top, left, _), (height, width, rest) = begin.numpy(), size.numpy()
    assert rest == -1
    assert 0 <= top <= 40 - height
    assert 0 <= left <= 60 - width
    np.testing.assert_allclose(box[0, 0], [top / 40, left / 60, (top + height) / 40, (left + width) / 60], rtol=1e-6)
    common = max(0, min(28, top + height) - max(8, top)) * max(0, min(54, left + width) - max(18, left))
    assert common >= 0.49 * 20 * 36
    if (height, width) != (40, 60):  # the whole image, when no attempt succeeds
        assert 0.18 <= height * width / 2400 <= 0.93
        assert 0.45 <= width / height <= 2.2


def test_noise_of_a_glimpse_lies_between_the_pixels():
    image = np.full((1, 4, 4, 1), 3.0, np.float32)
    image[0, 0, 0] = 5
    for noise in ("uniform", "gaussian"):
        tf.random.set_seed(0)
        out = tf.image.extract_glimpse(image, [12, 12], [[0.0, 0.0]], noise=noise).numpy()
        assert out.min() >= 3
        assert out.max() <= 5
        np.testing.assert_array_equal(out[0, 4:8, 4:8], image[0])


# Sizes, as TensorFlow rounds them

CROPS = [  # height, width, fraction, then height, width and first pixel of the crop
    (20, 15, 0.1, 2, 3, 141), (10, 23, 0.6, 6, 15, 50), (10, 12, 0.8, 8, 10, 13), (1, 20, 0.4, 1, 8, 6),
    (34, 25, 0.31, 12, 9, 283), (13, 2, 0.1, 3, 2, 10), (7, 32, 0.92, 7, 30, 1), (20, 24, 0.7, 14, 18, 75),
    (16, 34, 0.08, 2, 4, 253), (30, 29, 0.2, 6, 7, 359),
]  # fmt: skip


@pytest.mark.parametrize(("height", "width", "fraction", "rows", "columns", "first"), CROPS)
def test_central_crop_rounds_as_tensorflow_does(height, width, fraction, rows, columns, first):
    image = tf.reshape(tf.range(height * width), [height, width, 1])
    for share in (fraction, tf.constant(fraction), tf.constant(fraction, tf.float64), np.float32(fraction)):
        crop = tf.image.central_crop(image, share)
        assert (*crop.shape, int(crop[0, 0, 0])) == (rows, columns, 1, first)


PADS = [  # height, width, target height and width, then top, left, height and width of what is not padding
    (8, 12, 15, 30, 0, 3, 14, 22), (5, 22, 10, 21, 2, 0, 4, 20), (13, 16, 30, 30, 2, 0, 24, 29),
    (5, 4, 27, 14, 4, 0, 17, 13), (9, 6, 7, 29, 0, 12, 7, 4), (38, 37, 27, 38, 0, 5, 27, 26), (21, 3, 37, 29, 0, 11,
    37, 5), (33, 17, 3, 36, 0, 17, 3, 1), (23, 39, 29, 14, 10, 0, 8, 13), (33, 8, 27, 17, 0, 5, 27, 6), (36, 24, 35,
    38, 0, 7, 34, 23), (28, 14, 25, 32, 0, 9, 25, 12), (32, 8, 14, 16, 0, 6, 13, 3), (14, 20, 25, 36, 0, 0, 25, 35),
    (24, 8, 39, 27, 0, 7, 39, 12), (15, 9, 12, 21, 0, 6, 12, 7), (17, 36, 12, 14, 2, 0, 6, 14), (23, 33, 28, 30, 3, 0,
    20, 30), (5, 8, 22, 30, 1, 0, 18, 29), (36, 9, 15, 37, 0, 16, 14, 3), (35, 20, 31, 20, 0, 1, 31, 17), (29, 11, 14,
    7, 0, 0, 14, 5), (26, 35, 37, 35, 5, 0, 26, 35), (39, 21, 7, 32, 0, 14, 6, 3), (16, 29, 39, 7, 17, 0, 3, 7), (23,
    27, 23, 23, 1, 0, 19, 23), (16, 16, 15, 25, 0, 5, 14, 14),
]  # fmt: skip


@pytest.mark.parametrize("case", PADS, ids=str)
def test_resize_with_pad_rounds_as_tensorflow_does(case):
    height, width, target_height, target_width, top, left, rows, columns = case
    found = tf.image.resize_with_pad(tf.ones([height, width, 1]), target_height, target_width).numpy()[..., 0]
    expected = np.zeros((target_height, target_width))
    expected[top : top + rows, left : left + columns] = 1.0
    np.testing.assert_array_equal(found > 0, expected > 0)


NEAREST = [  # width, from, to, count, and the columns that are read
    (20, 0.1, 0.9, 25, [2, 3, 3, 4, 4, 5, 6, 6, 7, 8, 8, 9, 9, 10, 11, 11, 12, 13, 13, 14, 15, 15, 16, 16, 17]),
    (20, 0.1, 0.9, 23, [2, 3, 3, 4, 5, 5, 6, 7, 7, 8, 9, 9, 10, 11, 12, 12, 13, 14, 14, 15, 16, 16, 17]),
    (10, 0.1, 0.9, 19, [1, 1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 8, 8]),
    (16, 0.08, 0.66, 20, [1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 9, 10]),
]  # fmt: skip


@pytest.mark.parametrize(("width", "low", "high", "count", "columns"), NEAREST)
def test_crop_and_resize_reads_the_columns_that_tensorflow_reads(width, low, high, count, columns):
    image = tf.reshape(tf.range(float(width)), [1, 1, width, 1])
    found = tf.image.crop_and_resize(image, [[0.0, low, 0.0, high]], [0], [1, count], method="nearest")
    np.testing.assert_array_equal(found[0, 0, :, 0], columns)


def test_dilation_of_nothing_is_the_least_number():
    """A window may lie between the pixels, where it has holes."""
    x, w = tf.ones([1, 3, 14, 2]), tf.zeros([4, 4, 2])
    least = np.finfo(np.float32).min
    assert tf.nn.dilation2d(x, w, [1, 4, 4, 1], "SAME", "NHWC", [1, 4, 4, 1]).numpy().min() == least
    assert tf.nn.erosion2d(x, w, [1, 4, 4, 1], "SAME", "NHWC", [1, 4, 4, 1]).numpy().max() == -least
