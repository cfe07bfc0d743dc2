"""Which TensorFlow names are there, and what works through each: writes docs/coverage.md.

    python tools/coverage.py            # write the page
    python tools/coverage.py --check    # fail if the page is not what would be written

The names and how many public repositories use each are in tests/goldens/api_usage.csv. For a function of numbers the columns
are found by calling it (CALLS below): under a tape, under a forward accumulator, over a batch of inputs at once, and as a
compiled program.
"""

from __future__ import annotations

import csv
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gradtape as tf
from gradtape.scope import out_of_scope
from gradtape.values import batched, nest
from gradtape.values.tensor import wrap
from gradtape.xp import jax as JAX

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "coverage.md"
USAGE = ROOT / "tests" / "goldens" / "api_usage.csv"

NO_NAME = {"tf.tensor": "not a name of TensorFlow: it stands in texts only"}
# Names of Keras 2 that TensorFlow 2.21, which has Keras 3, does not have either: what to use instead
GONE = {
    "tf.keras.losses.mean_squared_error": "tf.keras.losses.MSE",
    "tf.keras.losses.mean_absolute_error": "tf.keras.losses.MAE",
    "tf.keras.experimental.CosineDecay": "tf.keras.optimizers.schedules.CosineDecay",
    "tf.keras.optimizers.experimental.AdamW": "tf.keras.optimizers.AdamW",
    "tf.keras.layers.DenseFeatures": "tf.keras.utils.FeatureSpace",
}

# ``a`` is a 2×3 array of different numbers between 0 and 1, ``q`` a 3×3 one, ``p`` an image of 1×8×8×3. An expression that does
# not name them has no input to differentiate by; "-" as the value: nothing of it is a number.
CALLS = """
reduce_mean(a,1) | reduce_sum(a,0) | cast(a,tf.float64) | constant(1.0) | reshape(a,[3,2]) | concat([a,a],0) | square(a)
convert_to_tensor(a) | zeros([2]) | shape(a) | expand_dims(a,0) | ones([2]) | stack([a,a]) | matmul(a,q) | argmax(a,1)
one_hot([1],3) | math.log(a) | exp(a) | squeeze(a[:1]) | zeros_like(a) | clip_by_value(a,0.25,0.65) | range(3) | abs(a)
nn.softmax(a) | transpose(a) | nn.relu(a-0.45) | ones_like(a) | equal(a,a) | sqrt(a) | reduce_max(a,1) | stop_gradient(a)
where(a>0.45,a,a*a) | maximum(a,0.45) | add(a,a) | sigmoid(a) | image.resize(p,[4,5]) | gather(a,[1,0]) | split(a,3,axis=1)
multiply(a,a) | minimum(a,0.45) | pow(a,2.5) | tile(a,[1,2]) | math.reduce_mean(a) | reduce_min(a,1) | identity(a)
nn.sigmoid(a) | norm(a) | math.exp(a) | nn.tanh(a) | add_n([a,a]) | size(a) | math.sqrt(a) | tanh(a)
clip_by_global_norm([a],0.5) | linspace(a[0],a[1],4) | nn.sigmoid_cross_entropy_with_logits(labels=a*0.5,logits=a)
nn.sparse_softmax_cross_entropy_with_logits(labels=[0,2],logits=a) | math.equal(a,a)
nn.softmax_cross_entropy_with_logits(labels=[[1.0,0,0],[0,0,1.0]],logits=a) | image.random_crop(p,[1,4,4,3])
math.reduce_std(a,1) | gather_nd(a,[[0,1],[1,2]]) | math.minimum(a,0.45) | broadcast_to(a,[2,2,3]) | nn.l2_loss(a)
image.convert_image_dtype(p,tf.float64) | fill([2],1.0) | math.reduce_sum(a) | cos(a) | sin(a) | reduce_prod(a,1)
nn.moments(a,[0]) | cond(True,lambda:a*a,lambda:a) | einsum('ij,jk->ik',a,q) | less(a,a) | clip_by_norm(a,0.5)
math.logical_not(a>0.4) | math.squared_difference(a,a[::-1]) | dynamic_stitch([[0,1],[2,3]],[a,a]) | math.abs(a)
logical_and(a>0.4,a<0.6) | subtract(a,a*a) | nn.softplus(a) | eye(2) | image.random_flip_left_right(p) | unstack(a)
greater(a,a) | tensordot(a,q,1) | linalg.matmul(a,q) | dynamic_partition(a,[0,1],2) | image.flip_left_right(p)
linalg.diag_part(q) | math.square(a) | math.sigmoid(a) | not_equal(a,a) | divide(a,a+1.0) | math.l2_normalize(a,1)
nn.dropout(a,0.5) | while_loop(lambda i,y:i<3,lambda i,y:(i+1,y*a),(0,a))[1] | math.cumprod(a,1) | math.top_k(a,2)[0] | sign(a)
shape_n([a]) | math.count_nonzero(a) | math.mod(a,0.25) | map_fn(lambda r:r*r,a) | rank(a) | math.sin(a) | pad(a,[[1,0],[0,2]])
linalg.norm(a) | meshgrid(a[0],a[1]) | nn.leaky_relu(a-0.45) | math.pow(a,2.5) | math.multiply(a,a)
boolean_mask(a,[True,False]) | nn.compute_average_loss(a[0]) | image.random_contrast(p,0.5,0.9) | linalg.band_part(q,0,1)
math.tanh(a) | image.rgb_to_grayscale(p) | math.is_nan(a) | nn.log_softmax(a) | math.argmax(a,1)
nn.conv2d(p,tf.ones([3,3,3,2],tf.float64),1,'SAME') | nn.elu(a-0.45) | is_tensor(a) | math.rsqrt(a)
image.random_brightness(p,0.1) | math.cos(a) | sequence_mask([1,2]) | dtypes.cast(a,tf.float64) | image.random_hue(p,0.1)
image.random_saturation(p,0.5,0.9) | reverse(a,[0]) | linalg.einsum('ij->ji',a) | math.reduce_max(a,1)
nn.embedding_lookup(a,[1,0]) | repeat(a,2,axis=1) | math.add(a,a) | image.resize_with_pad(p,4,5)
image.crop_to_bounding_box(p,1,1,4,4) | math.logical_and(a>0.4,a<0.6) | math.not_equal(a,a) | image.sobel_edges(p)
math.add_n([a,a]) | math.floordiv(a,0.25) | math.subtract(a,a*a) | image.total_variation(p)
nn.nce_loss(q,a[0],[[1],[2]],a,2,3) | signal.stft(tf.reshape(p,[-1]),16,8) | nn.depth_to_space(tf.tile(p,[1,1,1,4]),2) | sinh(a)
signal.linear_to_mel_weight_matrix(4,9) | random.shuffle(a) | random.normal([2]) | random.uniform([2])
random.truncated_normal([2]) | random.categorical(a,2) | sparse.to_dense(tf.SparseTensor([[0,1],[1,2]],a[0,:2],[2,3]))
sparse.sparse_dense_matmul(tf.SparseTensor([[0,1],[1,2]],a[0,:2],[2,3]),q)
sparse.reorder(tf.SparseTensor([[1,2],[0,1]],a[0,:2],[2,3])).values
"""
SAMPLES = {call.partition("(")[0].strip(): call.strip() for line in CALLS.strip().splitlines() for call in line.split(" | ")}

NUMBERS = np.random.RandomState(5)
INPUTS = {
    "a": np.array([[0.31, 0.72, 0.43], [0.64, 0.15, 0.56]]),
    "q": NUMBERS.uniform(0.1, 0.9, (3, 3)),
    "p": NUMBERS.uniform(0.1, 0.9, (1, 8, 8, 3)),
}


def resolve(symbol: str) -> bool:
    value: Any = tf
    for part in symbol.split(".")[1:]:
        try:
            value = getattr(value, part)
        except (AttributeError, ImportError):
            return False
    return True


def function_of(call: str) -> Callable:
    """The call as a function of its floating inputs."""

    def function(*values: Any) -> list:
        tf.random.set_seed(1)
        names = {"tf": tf, **dict(zip(INPUTS, values))}
        head, _, rest = call.partition("(")
        result = eval(f"tf.{head}({rest}", names)
        return [t for t in nest.flatten(result) if isinstance(t, tf.Tensor)]

    return function


def inputs() -> list:
    return [tf.constant(value) for value in INPUTS.values()]


def has_gradient(function: Callable) -> bool:
    values = inputs()
    with tf.GradientTape() as tape:
        tape.watch(values)
        results = [y for y in function(*values) if y.dtype.is_trainable]
    return any(g is not None for g in tape.gradient(results, values)) if results else False


def has_tangent(function: Callable) -> bool:
    values = inputs()
    with tf.autodiff.ForwardAccumulator(values, [tf.ones_like(v) for v in values]) as accumulator:
        results = function(*values)
    return any(accumulator.jvp(y) is not None for y in results)


def is_batched(function: Callable) -> bool:
    said: list = []
    handler = logging.Handler()
    handler.emit = said.append  # type: ignore[method-assign]
    batched.logger.addHandler(handler)
    batched._said.clear()
    try:
        stacked = [tf.stack([v, v * 0.99]) for v in inputs()]
        tf.vectorized_map(lambda values: function(*values), stacked, fallback_to_while_loop=False)
    except Exception:
        return False
    finally:
        batched.logger.removeHandler(handler)
    return not said


def is_compiled(function: Callable) -> bool:
    import jax

    def traced(*arrays: Any) -> list:
        return [y._array for y in function(*map(wrap, arrays))]

    with JAX.scope():
        try:
            jax.jit(traced)(*(jax.numpy.asarray(v) for v in INPUTS.values()))
        except Exception:
            return False
    return True


def columns(symbol: str) -> list[str]:
    """gradient, forward, batched, compiled: yes, no, or – where the question has no meaning."""
    call = SAMPLES.get(symbol.removeprefix("tf."))
    if call is None or not any(f"{name}" in call.partition("(")[2] for name in ("a", "q", "p")):
        return ["–"] * 4
    function = function_of(call)
    gradient = has_gradient(function)
    answers = [gradient, has_tangent(function) if gradient else None, is_batched(function), is_compiled(function)]
    return ["–" if answer is None else "yes" if answer else "no" for answer in (gradient or None, *answers[1:])]


def page() -> str:
    rows = list(csv.DictReader(USAGE.read_text().splitlines()))
    lines, present, absent, outside = [], 0, [], 0
    for row in rows:
        symbol, count = row["symbol"], row["repositories"]
        reason = out_of_scope(symbol)
        if symbol in NO_NAME:
            outside += 1
            lines.append(f"| `{symbol}` | {count} | {NO_NAME[symbol]} | | | | |")
        elif reason is not None:
            outside += 1
            text = reason.splitlines()[0].partition("out of scope: ")[2].rstrip(".")
            lines.append(f"| `{symbol}` | {count} | out of scope: {text} | | | | |")
        elif symbol in GONE:
            lines.append(f"| `{symbol}` | {count} | gone in Keras 3: `{GONE[symbol]}` | | | | |")
        elif resolve(symbol):
            present += 1
            lines.append(f"| `{symbol}` | {count} | present | {' | '.join(columns(symbol))} |")
        else:
            absent.append(symbol)
            lines.append(f"| `{symbol}` | {count} | **not there yet** | | | | |")
    share = 100 * present / (present + len(absent))
    return HEAD.format(
        names=len(rows), present=present, scope=present + len(absent), share=f"{share:.1f}", outside=outside, gone=len(GONE),
        absent=", ".join(f"`{s}`" for s in absent) or "nothing",
    ) + "\n".join(lines) + "\n"  # fmt: skip


HEAD = """# Which TensorFlow names are there

Written by `tools/coverage.py`; a test keeps it true. The {names} names are those that at least two public repositories with
`GradientTape` code use, most used first. Of the {scope} in scope {present} are present: **{share} %**. Missing: {absent}.
{outside} are out of scope: touching one says why, and what to use instead. {gone} are of Keras 2, and gone from
TensorFlow 2.21 as well. Names of Keras are those of Keras itself, so only their presence is told here.

gradient: reverse mode; forward: forward mode; batched: `vectorized_map` and Jacobians run it on all elements at once;
compiled: it traces into one XLA program. "–": the question has no meaning (not a function of numbers, or not differentiable).
"no" under batched or compiled: the shape of the result depends on values, or it draws random numbers or runs on the host.

| name | repositories | | gradient | forward | batched | compiled |
|---|---|---|---|---|---|---|
"""


def main() -> None:
    text = page()
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.read_text() == text else f"{PAGE.name} is out of date: run tools/coverage.py")
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
