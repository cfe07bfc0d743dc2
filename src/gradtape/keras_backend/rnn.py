"""Recurrent networks: a step for each row of a sequence.

Eager code loops in Python; in a compiled function a long sequence is one loop of the program, whose size does not grow with
the sequence. LSTM and GRU multiply all inputs by the input kernel at once, before the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from keras.src import tree

from gradtape.errors import message
from gradtape.function.leaves import Mismatch
from gradtape.keras_backend.core import cast, convert_to_tensor
from gradtape.keras_backend.numpy_promotion import together
from gradtape.ops import arrays, contract, elementwise, reduce
from gradtape.ops import shape as shapes
from gradtape.ops.execution import staging
from gradtape.values.tensor import Tensor

# Loops over time


_SHORT = 3
"""A loop of at most this many steps is written out in a program: a cell is many operations, and takes long to compile."""


class _Sequence:
    """Tensors whose rows along the axis of time are walked together."""

    def __init__(self, tensors: list[Tensor], axis: int, backwards: bool) -> None:
        self._tensors, self._axis, self._backwards = tensors, axis, backwards

    def walk(self, step: Callable, states: list[Tensor], keep: bool, unroll: bool) -> tuple[Tensor, Tensor, list[Tensor]]:
        """The last output, all of them (or ``keep`` False: the last alone) in the order of the walk, the last states.

        ``output, states = step(row, states)``, where ``row`` is a list with a row of each tensor.
        """
        if not self._tensors[0]._array.shape[self._axis]:
            text = "A recurrent layer needs at least one time step."
            raise ValueError(message(text, received=f"shape {tuple(self._tensors[0].shape)}", expected="timesteps > 0"))
        found = None if unroll or not staging.inside else self._as_loop(step, states, keep)
        return self._step_by_step(step, states, keep) if found is None else found

    def _step_by_step(self, step: Callable, states: list[Tensor], keep: bool) -> tuple[Tensor, Tensor, list[Tensor]]:
        rows = list(zip(*[arrays.unstack(x, axis=self._axis) for x in self._tensors]))
        outputs = []
        for row in reversed(rows) if self._backwards else rows:
            output, states = step(row, states)
            outputs.append(output)
        kept = outputs if keep else outputs[-1:]
        return outputs[-1], shapes.stack(*kept, axis=self._axis), states

    def _as_loop(self, step: Callable, states: list[Tensor], keep: bool) -> tuple[Tensor, Tensor, list[Tensor]] | None:
        """The walk as a loop of the program; None if it is short, or can only be written out."""

        def body(row: Any, *states: Tensor) -> tuple:
            output, after = step(row, list(states))
            return tuple(after), output

        rows = tuple(x if self._axis == 0 else _time_and_batch_swapped(x) for x in self._tensors)
        found = staging.control.scan("rnn", body, rows, tuple(states), reverse=self._backwards, unroll=_SHORT)
        if found is None:
            return None
        after, outputs = found
        if self._backwards:
            outputs = shapes.flip(outputs, axis=(0,))
        last = outputs[-1]
        kept = outputs if keep else outputs[-1:]
        return last, kept if self._axis == 0 else _time_and_batch_swapped(kept), list(after)


def _time_and_batch_swapped(x: Tensor) -> Tensor:
    return shapes.transpose(x, axes=(1, 0, *range(2, x._array.ndim)))


def rnn(
    step_function: Callable, inputs: Any, initial_states: Any, go_backwards: bool = False, mask: Any = None,
    constants: Any = None, unroll: bool = False, input_length: Any = None, time_major: bool = False,
    zero_output_for_mask: bool = False, return_all_outputs: bool = True,
) -> tuple[Tensor, Tensor, Any]:  # fmt: skip
    """The last output, all of them, and the last states of ``output, states = step_function(row, states)``.

    Where ``mask`` is False the states stay as they were, and the output is the one before, or 0.
    """
    tensors = [convert_to_tensor(x) for x in tree.flatten(inputs)]
    flat = [convert_to_tensor(state) for state in tree.flatten(initial_states)]
    pack = lambda leaves: tree.pack_sequence_as(initial_states, leaves)

    def call(row: Any, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        given = pack(states)
        row = tree.pack_sequence_as(inputs, list(row)) if tree.is_nested(inputs) else row[0]
        output, after = step_function(row, (*given, *constants) if constants else given)
        return output, tree.flatten(after)

    if mask is not None:
        tensors.append(_mask(mask))
    sequence = _Sequence(tensors, 0 if time_major else 1, go_backwards)
    try:
        previous = None if zero_output_for_mask else lambda states: _output_among(pack(states))
        step = call if mask is None else _masked(call, previous)
        last, outputs, states = sequence.walk(step, flat, return_all_outputs, unroll)
    except _NoOutputAmongStates:
        last, outputs, states = sequence.walk(_Remembering(call), flat, return_all_outputs, unroll=True)
    return last, outputs, pack(states)


def _mask(mask: Any) -> Tensor:
    """Which steps of which sequence count, (batch, time, 1); a mask by feature counts where any feature does."""
    mask = cast(mask, "bool")
    if mask._array.ndim > 2:
        mask = reduce.any(mask, axis=tuple(range(2, mask._array.ndim)))
    return shapes.expand_dims(mask, axis=-1)


class _NoOutputAmongStates(Mismatch):
    """The output of a step has another shape than the state that should be the output of the step before."""

    def __init__(self) -> None:
        super().__init__(type(self).__doc__ or "", 0, ())


def _output_among(states: Any) -> Tensor:
    """The state that is the output of the step before: the first one, of stacked cells the first one of the last cell."""
    return states[-1][0] if tree.is_nested(states[0]) else states[0]


def _masked(step: Callable, previous: Callable | None) -> Callable:
    """A step that leaves states as they were where the mask is False; the output is ``previous(states)``, or 0."""

    def call(row: Any, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        *row, counts = row
        output, after = step(row, states)
        before = elementwise.zeros_like(output) if previous is None else previous(states)
        if before._array.shape != output._array.shape:
            raise _NoOutputAmongStates
        return _chosen(counts, output, before), [_chosen(counts, new, old) for new, old in zip(after, states)]

    return call


class _Remembering:
    """As `_masked`, for cells whose states do not tell what the output was: at the beginning it is 0."""

    def __init__(self, step: Callable) -> None:
        self._step = _masked(step, None)
        self._last: Tensor | None = None

    def __call__(self, row: Any, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        output, after = self._step(row, states)
        if self._last is not None:
            output = _chosen(row[-1], output, self._last)
        self._last = output
        return output, after


def _chosen(counts: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """New where the sequence counts (batch, 1), else old."""
    if new._array.ndim != 2:
        counts = shapes.reshape(counts, shape=(-1, *[1] * (new._array.ndim - 1)))
    return elementwise.where(counts, new, cast(old, new.dtype.name))


# LSTM and GRU


def _direct(activation: Callable) -> Callable:
    """Our own function for one of Keras's activations, which first look at what they are given."""
    from keras.src import activations

    found = {activations.tanh: elementwise.tanh, activations.sigmoid: elementwise.sigmoid}
    return found.get(activation, activation)


def _projected(inputs: Any, kernel: Any, bias: Tensor | None) -> Tensor:
    """All inputs times the kernel of all gates."""
    projected = contract.matmul(*together(inputs, kernel))
    return projected if bias is None else elementwise.add(projected, bias)


def _gates(x: Tensor, count: int) -> tuple[Tensor, ...]:
    """The parts of the last axis that belong to one gate each."""
    units = x._array.shape[-1] // count
    return arrays.split(x, sizes=(units,) * count, axis=x._array.ndim - 1)


def lstm(
    inputs: Any, initial_state_h: Any, initial_state_c: Any, mask: Any, kernel: Any, recurrent_kernel: Any, bias: Any,
    activation: Callable, recurrent_activation: Callable, return_sequences: bool = False, go_backwards: bool = False,
    unroll: bool = False,
) -> tuple[Tensor, Tensor, list[Tensor]]:  # fmt: skip
    """Long short-term memory (Hochreiter and Schmidhuber, 1997)."""
    if mask is not None:
        raise NotImplementedError  # what a masked step gives is the layer's to say: Keras calls `rnn` then
    activate, gate = _direct(activation), _direct(recurrent_activation)
    recurrent = convert_to_tensor(recurrent_kernel)
    projected = _projected(inputs, kernel, None if bias is None else convert_to_tensor(bias))

    def step(row: Any, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        h, c = states
        i, f, new, o = _gates(elementwise.add(row[0], contract.matmul(h, recurrent)), 4)
        kept = elementwise.multiply(gate(f), c)
        c = elementwise.add(kept, elementwise.multiply(gate(i), activate(new)))
        h = elementwise.multiply(gate(o), activate(c))
        return h, [h, c]

    states = [cast(initial_state_h, projected.dtype.name), cast(initial_state_c, projected.dtype.name)]
    return _Sequence([projected], 1, go_backwards).walk(step, states, return_sequences, unroll)


def gru(
    inputs: Any, initial_state: Any, mask: Any, kernel: Any, recurrent_kernel: Any, bias: Any, activation: Callable,
    recurrent_activation: Callable, return_sequences: bool = False, go_backwards: bool = False, unroll: bool = False,
    reset_after: bool = True,
) -> tuple[Tensor, Tensor, list[Tensor]]:  # fmt: skip
    """Gated recurrent unit (Cho et al., 2014); ``reset_after``: the reset gate comes after the product, as in cuDNN."""
    if mask is not None:
        raise NotImplementedError  # as in `lstm`
    activate, gate = _direct(activation), _direct(recurrent_activation)
    recurrent = convert_to_tensor(recurrent_kernel)
    units = recurrent._array.shape[0]
    bias = None if bias is None else convert_to_tensor(bias)
    own_bias = None
    if bias is not None and bias._array.ndim == 2:
        bias, own_bias = arrays.unstack(bias, axis=0)

    def after(h: Tensor, x_z: Tensor, x_r: Tensor, x_h: Tensor) -> tuple[Tensor, Tensor]:
        inner = contract.matmul(h, recurrent)
        h_z, h_r, h_h = _gates(inner if own_bias is None else elementwise.add(inner, own_bias), 3)
        r = gate(elementwise.add(x_r, h_r))
        return gate(elementwise.add(x_z, h_z)), activate(elementwise.add(x_h, elementwise.multiply(r, h_h)))

    def before(h: Tensor, x_z: Tensor, x_r: Tensor, x_h: Tensor) -> tuple[Tensor, Tensor]:
        h_z, h_r = _gates(contract.matmul(h, gates), 2)
        r = gate(elementwise.add(x_r, h_r))
        inner = contract.matmul(elementwise.multiply(r, h), candidate)
        return gate(elementwise.add(x_z, h_z)), activate(elementwise.add(x_h, inner))

    if not reset_after:
        gates, candidate = arrays.split(recurrent, sizes=(2 * units, units), axis=1)
    cell = after if reset_after else before

    def step(row: Any, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        (h,) = states
        z, new = cell(h, *_gates(row[0], 3))
        h = elementwise.add(elementwise.multiply(z, elementwise.subtract(h, new)), new)
        return h, [h]

    projected = _projected(inputs, kernel, bias)
    states = [cast(initial_state, projected.dtype.name)]
    return _Sequence([projected], 1, go_backwards).walk(step, states, return_sequences, unroll)


def cudnn_ok(*args: Any, **kwargs: Any) -> bool:
    return False


def bidirectional_lstm(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError  # Keras then runs both directions one after the other


bidirectional_gru = bidirectional_lstm
