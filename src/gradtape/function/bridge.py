"""Bridges to jax: a gradtape function as a jax function, and a jax function as one differentiable step on the tape.

Each side keeps its own rules. Derivatives of `to_jax` are those of our ops, to any order; those of `from_jax` are jax's.
jax code runs under the user's own jax setting: unless 64-bit types are enabled there, float64 tensors enter it as float32
and leave it as float32, and their gradients come back as float64.

The two differ in the gradient of a real number by a complex one, which here (as in TensorFlow) is the conjugate of jax's.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.context import suspended, thread
from gradtape.core.custom import record_custom
from gradtape.core.tape import GradientTape
from gradtape.errors import message
from gradtape.function.results import as_tensors
from gradtape.function.state import State
from gradtape.ops import elementwise
from gradtape.ops.execution import staging
from gradtape.values import nest
from gradtape.values.batched import NotVectorizable
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.tensor import Tensor, wrap


def _jax() -> Any:
    try:
        import jax
    except ImportError as error:
        raise ImportError(message("A bridge to jax needs jax.", fix='pip install "gradtape[xla]"')) from error
    return jax


def _setting(wide: bool) -> Any:
    """Context manager: 64-bit types enabled in jax or not, for this thread."""
    from gradtape.xp import jax as JAX

    return JAX._enable_x64(wide)


def _users_setting() -> bool:
    """Whether the user enabled 64-bit types in jax; while a function is traced we have, in this thread but in no other."""
    jax = _jax()
    if not staging.inside:
        return jax.config.jax_enable_x64
    seen: list[bool] = []
    other = threading.Thread(target=lambda: seen.append(jax.config.jax_enable_x64))
    other.start()
    other.join()
    return seen[0]


def _narrowed(array: Any, wide: bool) -> Any:
    """A jax array of a dtype that jax keeps under the user's setting."""
    jax = _jax()
    with _setting(wide):
        kept = jax.dtypes.canonicalize_dtype(array.dtype)
    with _setting(True):
        return jax.numpy.asarray(array).astype(kept)


def _conjugated(array: Any) -> Any:
    return array.conj() if array.dtype.kind == "c" else array


# A gradtape function in jax


def to_jax(f: Callable) -> Callable:
    """The function as a jax function of jax arrays in pytrees; ``jax.grad`` uses the rules of our ops, to any order.

    >>> import jax, gradtape as tf
    >>> slope = jax.grad(to_jax(lambda x: tf.reduce_sum(tf.sin(x) * x)))
    >>> slope(0.0)
    Array(0., dtype=float32)

    It may be transformed by ``jax.jit``, ``grad``, ``value_and_grad``, ``vjp``, ``vmap``, ``jacrev``; as with any
    ``jax.custom_vjp``, not by ``jvp``. Variables are read when jax traces it and count as constants; it may not assign them.
    Python numbers that jax does not trace reach ``f`` as they are.
    """
    jax = _jax()

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = jax.tree_util.tree_flatten((args, kwargs))
        places = [i for i, leaf in enumerate(leaves) if hasattr(leaf, "dtype") and hasattr(leaf, "shape")]
        shape_of_result: Any = None

        def run(tensors: list[Tensor]) -> list[Tensor]:
            nonlocal shape_of_result
            given = list(leaves)
            for i, tensor in zip(places, tensors):
                given[i] = tensor
            ours, named = jax.tree_util.tree_unflatten(tree, given)
            result = as_tensors(f(*ours, **named), getattr(f, "__name__", "f"))
            found, shape_of_result = jax.tree_util.tree_flatten(nest.map_structure(_dense, result))
            return found

        outs = _primitive(run)(*[leaves[i] for i in places])
        return jax.tree_util.tree_unflatten(shape_of_result, outs)

    return call


def _dense(leaf: Any) -> Any:
    return leaf if leaf is None else convert_to_tensor(leaf)


def _primitive(run: Callable[[list[Tensor]], list[Tensor]]) -> Callable:
    """Tensor code as a jax function with a custom derivative, which is tensor code as well."""
    jax = _jax()

    @jax.custom_vjp
    def primitive(*arrays: Any) -> list:
        wide = jax.config.jax_enable_x64
        state = State(may_create=False)
        with suspended(), state:
            results = run([wrap(jax.numpy.asarray(a)) for a in arrays])
        if state.assigned:
            names = ", ".join(repr(v.name) for v in state.assigned.values())
            raise ValueError(
                message(
                    "A function that is passed to jax may not assign variables.",
                    received=f"an assignment to {names}",
                    fix="return the new value; jax functions have no side effects",
                )
            )
        return [_narrowed(t._array, wide) for t in results]

    def forward(*arrays: Any) -> tuple:
        return primitive(*arrays), arrays

    def backward(arrays: tuple, upstream: list) -> tuple:
        trainable = [_is_trainable(a) for a in arrays]
        given = [_conjugated(g) for g in upstream if _is_trainable(g)]

        def gradients(tensors: list[Tensor]) -> list[Tensor]:
            inputs, gs = tensors[: len(arrays)], tensors[len(arrays) :]
            sources = [t for t, yes in zip(inputs, trainable) if yes]
            with GradientTape() as tape:
                tape.watch(sources)
                targets = [t for t in run(inputs) if t.dtype.is_trainable]
            found = tape.gradient(targets, sources, [_cast(g, t) for g, t in zip(gs, targets)], "zero")
            return [convert_to_tensor(g) for g in found]

        rest = iter(_primitive(gradients)(*arrays, *given))
        return tuple(
            _conjugated(next(rest)) if yes else np.zeros(a.shape, jax.dtypes.float0) for a, yes in zip(arrays, trainable)
        )

    primitive.defvjp(forward, backward)
    return primitive


def _is_trainable(array: Any) -> bool:
    return _jax().numpy.issubdtype(array.dtype, np.inexact)


# A jax function on the tape


def from_jax(g: Callable) -> Callable:
    """A jax function as one differentiable step: tensors, variables and arrays in pytrees go in, tensors come out.

    >>> import jax.numpy as jnp, gradtape as tf
    >>> square_sum = from_jax(lambda x: jnp.sum(x**2))
    >>> x = tf.constant([1.0, 2.0])
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = square_sum(x)
    >>> tape.gradient(y, x).numpy()
    array([2., 4.], dtype=float32)

    Gradients are ``jax.vjp``'s, to any order. It runs as jax runs it: pass ``jax.jit(g)`` to have it compiled; inside
    ``tf.function`` it becomes part of the program. Other arguments than arrays reach ``g`` as they are.
    """
    _jax()

    @functools.wraps(g)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _Step(g, args, kwargs).run()

    return call


class _Step:
    """One call of a jax function: its arrays apart, and what it takes to put arguments and results together again."""

    def __init__(self, g: Callable, args: tuple, kwargs: dict) -> None:
        self.function = g
        self.wide = _users_setting()
        self.leaves, self.tree = _jax().tree_util.tree_flatten((args, kwargs))
        self.places = [i for i, leaf in enumerate(self.leaves) if _is_array(leaf)]
        self.inputs = [self._input(self.leaves[i]) for i in self.places]
        if thread.batch:
            raise NotVectorizable("A jax function is run one element at a time.")
        self.arrays = [_narrowed(t._array, self.wide) for t in self.inputs]

    def _input(self, leaf: Any) -> Tensor:
        return leaf._operand() if isinstance(leaf, Convertible) else convert_to_tensor(leaf)

    def run(self) -> Any:
        """The result as tensors, recorded on every tape that follows one of the inputs."""
        jax = _jax()
        trainable = [i for i, a in enumerate(self.arrays) if _is_trainable(a)]
        with _setting(self.wide):
            if any(_is_followed(self.inputs[i]) for i in trainable):
                outs, pull = jax.vjp(self._flat(trainable), *[self.arrays[i] for i in trainable])
            else:
                outs, pull = self._flat([])(), None
        tensors = [_tensor(a) for a in outs]
        if pull is not None:
            name = getattr(self.function, "__name__", "jax function")
            tensors = record_custom(name, self._rule(trainable, outs, pull), tensors, self.inputs, [])
        return jax.tree_util.tree_unflatten(self.result_tree, tensors)

    def _flat(self, varied: list[int]) -> Callable:
        """The function of those of its arrays, in a list; the other arguments are as they were given."""

        def flat(*arrays: Any) -> list:
            tree_util = _jax().tree_util
            given = list(self.leaves)
            for i, array in zip(self.places, self.arrays):
                given[i] = array
            for i, array in zip(varied, arrays):
                given[self.places[i]] = array
            args, kwargs = tree_util.tree_unflatten(self.tree, given)
            found, self.result_tree = tree_util.tree_flatten(self.function(*args, **kwargs))
            return [_jax().numpy.asarray(leaf) for leaf in found]

        return flat

    def _rule(self, trainable: list[int], outs: list, pull: Callable) -> Callable:
        """From upstream gradients to gradients; as a jax function on the tape where somebody differentiates it again."""
        outs = [_jax().ShapeDtypeStruct(out.shape, out.dtype) for out in outs]  # the numbers may go

        def pulled(arrays: list, upstream: list) -> list:
            again = _jax().vjp(self._flat(trainable), *arrays)[1]
            return again(self._cotangents(outs, upstream))

        def grad_fn(*upstream: Tensor) -> list:
            conjugated = [_conjugate(u) for u, out in zip(upstream, outs) if _is_trainable(out)]
            if thread.recorders:
                found = from_jax(pulled)([self.inputs[i] for i in trainable], conjugated)
            else:
                given = [_narrowed(u._array, self.wide) for u in conjugated]
                with _setting(self.wide):
                    found = [_tensor(a) for a in pull(self._cotangents(outs, given))]
            by_input: list[Any] = [None] * len(self.inputs)
            for i, gradient in zip(trainable, found):
                by_input[i] = _cast(_conjugate(gradient), self.inputs[i])
            return by_input

        return grad_fn

    def _cotangents(self, outs: list, upstream: list) -> list:
        """One for each result: integers have one without a number."""
        rest = iter(upstream)
        float0 = _jax().dtypes.float0
        return [next(rest) if _is_trainable(out) else np.zeros(out.shape, float0) for out in outs]


def _is_array(leaf: Any) -> bool:
    if isinstance(leaf, (Tensor, Convertible, np.ndarray, np.generic)):
        return True
    jax = _jax()  # a random key is an array only to jax
    return isinstance(leaf, jax.Array) and not jax.numpy.issubdtype(leaf.dtype, jax.dtypes.extended)


def _is_followed(x: Tensor) -> bool:
    """Whether a recorder of this thread knows this value."""
    return x._key is not None and any(x._key in recorder.records for recorder in thread.recorders)


def _tensor(array: Any) -> Tensor:
    """In this machine's memory as a NumPy array, which shares it."""
    tensor = wrap(array)
    on_cpu = not tensor._is_traced() and all(device.platform == "cpu" for device in array.devices())
    return wrap(np.asarray(array)) if on_cpu else tensor


def _conjugate(x: Tensor) -> Tensor:
    return elementwise.conj(x) if x.dtype.is_complex else x


def _cast(gradient: Tensor, x: Tensor) -> Tensor:
    """A gradient in the dtype of what it belongs to."""
    return gradient if gradient.dtype is x.dtype else elementwise.cast(gradient, x.dtype)
