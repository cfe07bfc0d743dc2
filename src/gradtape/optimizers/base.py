"""`Optimizer`: what all optimizers share. An algorithm adds its slots and two short methods.

A rule is written once, as array code that names a buffer for every result::

    m = xp.multiply(m, momentum, m)

On NumPy ``xp`` is `numpy` itself and the last argument its ``out`` (for `maximum` a keyword): the update happens in place,
without temporaries. Elsewhere (`functional`) the buffer is ignored and the returned values are what counts. In place is
safe because `writable` copies a buffer first if anybody but its variable can see it; and where several threads read values,
`changed` works on copies, which then take the places of the old values at once (`values.sharing`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np

from gradtape.core.context import suspended
from gradtape.core.tape import GradientTape
from gradtape.core.variable import Variable, variable_of
from gradtape.errors import message, shown
from gradtape.ops.execution import staging
from gradtape.optimizers import functional, gradients, on_device, schedules
from gradtape.optimizers.gradients import Rows
from gradtape.values import dtypes
from gradtape.values.convert import Convertible
from gradtape.values.sharing import WRITING, alone, new_lock
from gradtape.values.tensor import Tensor, wrap
from gradtape.xp import numpy as NUMPY

BLOCK = 1 << 18
"""Larger variables are updated in pieces of this many elements, so that all the passes of a rule stay in the cache."""

_BUILDING = new_lock()  # held while an optimizer makes its state: of threads that share one, the first does it
_counts: dict[str, itertools.count] = {}

_NOT_SETTABLE = (
    "This optimizer was created with a `LearningRateSchedule` object as its `learning_rate` constructor argument, hence its "
    "learning rate is not settable. If you need the learning rate to be settable, you should instantiate the optimizer with "
    "a float `learning_rate` argument."
)


single = np.float32
"""Keras rounds some numbers to float32 before it takes them to the variable's dtype; in float64 that shows."""


def writable(variable: Variable) -> np.ndarray:
    """The variable's buffer for a change in place, while `WRITING` is held and this thread is alone.

    A copy takes its place if somebody else can see it.
    """
    buffer = variable.exclusive()
    if buffer is None:
        buffer = np.array(variable._tensor._array, order="C")
        variable._put(buffer)
    return buffer


def changed(change: Callable, *variables: Variable, ours: bool = True) -> None:
    """Call ``change`` with the buffers of variables, which it writes over: all that others see is before or after it.

    No update of the first variable by another thread is lost. ``ours``: no code of the user's runs in it, so that it may
    hold a lock; otherwise it is called again if somebody has assigned a variable meanwhile.
    """
    with WRITING if ours else nullcontext():
        if ours and alone():
            change(*map(writable, variables))
            return
    first, replaced = variables[0], partial(_replaced, change, variables)
    while not (first.atomically(replaced) if ours else replaced()):
        pass


def _replaced(change: Callable, variables: tuple[Variable, ...]) -> bool:
    """Change copies, and put them in the places of the old values, unless those have been replaced by now."""
    before = [variable.snapshot() for variable in variables]
    buffers = [np.array(tensor._array, order="C") for tensor in before]
    change(*buffers)

    def replace() -> bool:
        unchanged = all(variable._tensor is tensor for variable, tensor in zip(variables, before))
        for variable, buffer in zip(variables, buffers if unchanged else ()):
            variable._put(buffer)
        return unchanged

    return variables[0].atomically(replace)


class Optimizer:
    """Base of all optimizers; ``learning_rate`` is a number, a schedule, or a function without arguments.

    ``weight_decay`` takes ``learning_rate · weight_decay · p`` off each variable before the update. At most one of
    ``clipnorm`` (norm of each gradient), ``clipvalue`` (each element) and ``global_clipnorm`` (norm of all gradients
    together) bounds the gradients. ``use_ema`` keeps an average of each variable,
    ``average ← ema_momentum · average + (1 − ema_momentum) · p``, and puts it into the variable every
    ``ema_overwrite_frequency`` steps and in `finalize_variable_values`. Gradients are divided by ``loss_scale_factor``, and
    averaged over ``gradient_accumulation_steps`` calls before they are applied.
    """

    row_wise = False  # whether a row with a zero gradient stays as it is, so that a sparse update may skip it
    scratch = 1  # how many buffers the rule needs
    of_each: str | None = None  # what a rule takes of each slice of a gather's gradient, as Keras does: "square" or "abs"
    _deferred: Any = None  # a restored checkpoint that waits for variables not made yet

    def __init__(
        self,
        learning_rate: Any,
        weight_decay: float | None = None,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        use_ema: bool = False,
        ema_momentum: float = 0.99,
        ema_overwrite_frequency: int | None = None,
        loss_scale_factor: float | None = None,
        gradient_accumulation_steps: int | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        if kwargs:
            fix = "learning_rate=schedules.InverseTimeDecay(rate, 1, decay)" if "decay" in kwargs else None
            raise ValueError(message(f"Argument(s) not recognized: {kwargs}", fix=fix))
        self.name = name or _unique_name(type(self).__name__)
        self.weight_decay = weight_decay
        self.clipnorm = clipnorm
        self.clipvalue = clipvalue
        self.global_clipnorm = global_clipnorm
        self.use_ema = use_ema
        self.ema_momentum = ema_momentum
        self.ema_overwrite_frequency = ema_overwrite_frequency
        self.loss_scale_factor = loss_scale_factor
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self._check_options()
        self.built = False
        self._variables: list[Variable] = []
        self._trainable: list[Variable] = []
        # By the variable's key: shape, dtype, index into _dtypes, scratch buffers (None: update in blocks), slots.
        self._entries: dict[Any, tuple] = {}
        self._dtypes: list[np.dtype] = []
        self._constrained = False
        self._undecayed: tuple[list[Variable], str] = ([], "")
        self._averages: list[Variable] = []
        self._accumulators: list[Variable] = []
        self._updates_tensors = type(self).update_step is not Optimizer.update_step  # a rule written for Keras
        self._is_ours = type(self).update.__module__.startswith(__package__ + ".")
        self._iterations = self.add_variable((), dtype="int64", name="iteration")
        self._learning_rate = self._tracked_rate(learning_rate)

    def _check_options(self) -> None:
        clips = {n: getattr(self, n) for n in ("clipnorm", "clipvalue", "global_clipnorm")}
        if sum(value is not None for value in clips.values()) > 1:
            received = ", ".join(f"{n}={value}" for n, value in clips.items())
            text = f"Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set. Received: {received}"
            raise ValueError(message(text, received=received, fix="leave the others at None"))
        steps, frequency = self.gradient_accumulation_steps, self.ema_overwrite_frequency
        if steps and steps < 2:
            text = f"`gradient_accumulation_steps` must be an integer >= 2. Received: gradient_accumulation_steps={steps}"
            raise ValueError(message(text, received=f"gradient_accumulation_steps={steps}", expected="2 or more, or None"))
        if self.use_ema and not 0 <= self.ema_momentum <= 1:
            text = f"`ema_momentum` must be in the range [0, 1]. Received: ema_momentum={self.ema_momentum}"
            raise ValueError(message(text, received=f"ema_momentum={self.ema_momentum}", expected="0 to 1: 0.99 is usual"))
        if self.use_ema and frequency and (not isinstance(frequency, int) or frequency < 1):
            text = f"`ema_overwrite_frequency` must be an integer >= 1 or None. Received: ema_overwrite_frequency={frequency}"
            raise ValueError(message(text, received=f"ema_overwrite_frequency={frequency}", expected="1 or more, or None"))

    # What an algorithm defines

    def slots(self) -> list[dict[str, float]]:
        """The state that it keeps for each variable, in the order in which `update` takes it: names and initial values.

        Those of one dictionary stand together in `variables`, variable by variable, as in Keras.
        """
        return []

    def coefficients(self, xp: Any, lr: Any, step: Any, cast: Callable) -> tuple:
        """The numbers of this step (``step`` counts from 1), for `update`; ``cast`` gives a number the variable's dtype."""
        return (lr,)

    def update(self, xp: Any, k: tuple, scratch: tuple, g: Any, p: Any, *slots: Any) -> tuple:
        """The new value and slots for gradient ``g``, value ``p`` and coefficients ``k``.

        A rule with `of_each` takes one more argument, ``each``: for the gradient of a gather of rows that come several times,
        the sum of the squares (absolute values) of all slices; ``g`` is the sum of the slices then.
        """
        raise NotImplementedError(
            message(
                f"{type(self).__name__} must define `update` or `update_step`.",
                received=f"a {type(self).__name__} without it",
                fix="def update_step(self, gradient, variable, learning_rate): …",
            )
        )

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Any) -> None:
        """The same for rules in the manner of Keras: on tensors, with `assign` and its kin."""
        raise NotImplementedError

    def _begin(self, step: Any) -> None:
        """Called once before the updates of a step; for state that all variables share."""

    # State

    def build(self, var_list: Iterable[Variable]) -> None:
        """Make the state for these variables; the first `apply_gradients` does it by itself."""
        with _BUILDING:
            if not self.built:
                self._build([variable_of(variable) for variable in var_list])

    def _build(self, variables: list[Variable]) -> None:
        for variable in variables:
            gradients.check_variable(variable, self)
        self._trainable = variables
        if self.use_ema:
            self._averages = self.add_optimizer_variables(variables, "average")
        if self.gradient_accumulation_steps:
            self._accumulators = self.add_optimizer_variables(variables, "gradient_accumulator")
        self._constrained = any(v.constraint is not None for v in variables)
        slots: list[list[Variable]] = [[] for _ in variables]
        for group in self.slots():
            for variable, made in zip(variables, slots):
                made.extend(self.add_variable_from_reference(variable, name, value) for name, value in group.items())
        self._register(slots)
        self.built = True
        if self._deferred is not None:
            self._deferred(self)

    def _adopt(self, iterations: Variable, trainable: list, slots: list, averages: list, accumulators: list) -> None:
        """Work on variables that exist already: those of an optimizer of Keras, which has the state and saves it."""
        self._iterations, self._trainable, self._averages, self._accumulators = iterations, trainable, averages, accumulators
        self._variables = [iterations, *averages, *accumulators, *itertools.chain(*slots)]
        self._constrained = any(v.constraint is not None for v in trainable)
        self._register(slots)
        self.built = True

    def _register(self, slots: list[list[Variable]]) -> None:
        buffers: dict[np.dtype, np.ndarray] = {}
        self._entries = {v._key: self._entry(v, tuple(made), buffers) for v, made in zip(self._trainable, slots)}
        self._dtypes = list(buffers)

    def _entry(self, variable: Variable, slots: tuple, buffers: dict[np.dtype, np.ndarray]) -> tuple:
        array = variable._tensor._array
        dtype, size = array.dtype, array.size
        if dtype not in buffers:  # all variables work in the same scratch memory, which therefore stays in the cache
            buffers[dtype] = np.empty((self.scratch, BLOCK), dtype)
        index = list(buffers).index(dtype)
        if not variable.shape.is_fully_defined():
            return None, dtype, index, None, slots  # no shape to rely on: never on the fast path
        if size > BLOCK:
            return array.shape, dtype, index, None, slots
        return array.shape, dtype, index, tuple(row[:size].reshape(array.shape) for row in buffers[dtype]), slots

    def add_variable(self, shape: Any, initializer: Any = "zeros", dtype: Any = None, name: str | None = None) -> Variable:
        """A new variable of this optimizer; ``initializer`` is "zeros", "ones" or a number."""
        value = {"zeros": 0, "ones": 1}.get(initializer, initializer)
        array = np.full(tuple(shape), value, dtypes.as_dtype(dtype or "float32").numpy)
        variable = Variable(wrap(array), trainable=False, name=f"{self.name}/{name or 'variable'}")
        self._variables.append(variable)
        if self._deferred is not None:
            self._deferred(self)
        return variable

    def add_variable_from_reference(
        self, reference_variable: Variable, name: str | None = None, initializer: Any = "zeros"
    ) -> Variable:
        """A new variable of this optimizer with the shape and dtype of another."""
        reference = reference_variable.name.replace("/", "_").replace(":", "_")
        array = reference_variable._tensor._array
        return self.add_variable(array.shape, initializer, dtypes.of(array.dtype), f"{reference}_{name or 'var'}")

    def add_optimizer_variables(self, trainable_variables: Iterable[Variable], name: Any, initializer: Any = "zeros") -> Any:
        """A new variable for each one given; for a list of names a tuple of such lists."""
        if isinstance(name, str):
            return [self.add_variable_from_reference(v, name, initializer) for v in trainable_variables]
        initial = initializer if isinstance(initializer, (list, tuple)) else [initializer] * len(name)
        made = [[self.add_variable_from_reference(v, n, i) for n, i in zip(name, initial)] for v in trainable_variables]
        return tuple(list(column) for column in zip(*made))

    @property
    def variables(self) -> list[Variable]:
        """The whole state: iterations, learning rate, then the slots."""
        return self._variables[:]

    def set_weights(self, weights: Iterable[Any]) -> None:
        """Assign to all of `variables`."""
        weights = list(weights)
        if len(weights) != len(self._variables):
            raise ValueError(
                message(
                    f"{self.name}.set_weights received {len(weights)} values for {len(self._variables)} variables.",
                    fix=None if self.built else "call build(variables) first: it makes the slots",
                )
            )
        for variable, weight in zip(self._variables, weights):
            variable.assign(weight)

    def get_weights(self) -> list:
        return [v.numpy() for v in self._variables]

    @property
    def iterations(self) -> Any:
        """How many updates were made: a variable; with gradient accumulation a tensor."""
        steps = self.gradient_accumulation_steps
        return self._iterations._tensor // steps if steps else self._iterations

    # Learning rate

    def _tracked_rate(self, value: Any) -> Any:
        value = variable_of(value)
        if callable(value) or isinstance(value, Variable):
            return value
        if isinstance(value, (bool, str)) or value is None or np.ndim(value) or np.asarray(value).dtype.kind not in "fiu":
            text = (
                "Argument `learning_rate` should be float, or an instance of LearningRateSchedule, or a callable (that takes "
                "in the current iteration value and returns the corresponding learning rate value). Received instead: "
                f"learning_rate={value}"
            )
            raise ValueError(
                message(text, received=shown(value), expected="a float, a schedule, or a function without arguments")
            )
        return self.add_variable((), float(value), name="learning_rate")

    @property
    def learning_rate(self) -> Any:
        """The current rate: a variable if it was given as a number, else what the schedule or function says."""
        rate = self._learning_rate
        if isinstance(rate, Variable):
            return rate
        return rate(self._iterations) if isinstance(rate, schedules.LearningRateSchedule) else rate()

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        rate, value = self._learning_rate, variable_of(value)
        if callable(value) or isinstance(value, Variable):
            self._variables = [v for v in self._variables if v is not rate]
            self._learning_rate = value
        elif isinstance(rate, Variable):
            rate.assign(np.asarray(value._operand() if isinstance(value, Convertible) else value))
        elif isinstance(rate, schedules.LearningRateSchedule):
            raise TypeError(
                message(
                    _NOT_SETTABLE,
                    received=shown(value),
                    fix="optimizer.learning_rate.assign(value), with an optimizer made with a float",
                )
            )
        else:
            self._learning_rate = self._tracked_rate(value)

    lr = learning_rate

    def _rate(self) -> Any:
        """The current rate as a raw array or number."""
        rate = self._learning_rate
        if type(rate) is not Variable:
            rate = self.learning_rate
        if isinstance(rate, Convertible):
            rate = rate._operand()
        return rate._array if isinstance(rate, Tensor) else np.asarray(rate, np.float32)

    # Applying gradients

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Variable]], name: str | None = None) -> Variable:
        """Update each variable by its gradient; pairs with None are left out. Returns `iterations`.

        All gradients are looked at before any variable changes.
        """
        pairs = list(grads_and_vars)
        work = self._fitting(pairs)
        if work is None:
            pairs = gradients.with_variables(pairs)
            work = self._fitting(pairs) or self._checked(pairs)
        if work is None:
            if not staging.inside and on_device.apply(self, pairs):
                return self._iterations
            functional.apply(self, pairs)
        else:
            with NUMPY.scope():  # inf and nan are legitimate results here
                self._apply(work)
        iterations = self._iterations
        if type(iterations._tensor) is Tensor:
            changed(_count, iterations)
        else:
            iterations.assign_add(1)
        return iterations

    def apply(self, grads: Iterable[Any], trainable_variables: Iterable[Variable] | None = None) -> None:
        """Update the variables (default: those the optimizer was built with) by a list of gradients in the same order."""
        grads = list(grads)
        variables = self._trainable if trainable_variables is None else list(trainable_variables)
        if not grads:
            return
        if trainable_variables is None and not self.built:
            text = (
                "When passing `grads` without `variables`, the optimizer must already be built on a list of variables. "
                "Call `optimizer.build(trainable_variables)` first. "
            )
            raise ValueError(message(text, received="grads alone", fix="optimizer.apply_gradients(zip(grads, variables))"))
        gradients.check_count(grads, variables, self)
        self.apply_gradients(zip(grads, variables))

    def _fitting(self, pairs: list) -> list | None:
        """What `_apply` needs, if every gradient is a dense tensor just like its variable: the fast path."""
        entries = self._entries
        work = []
        try:
            for g, variable in pairs:
                entry = entries[variable._key]
                array = g._array
                if type(g) is not Tensor or array.dtype is not entry[1] or array.shape != entry[0]:
                    return None
                work.append((array, variable, entry))
        except (AttributeError, LookupError, TypeError, ValueError):
            return None  # not built yet, or something for _checked to explain
        return work or None

    def _checked(self, pairs: list) -> list | None:
        """The same for anything that can be a gradient; None if a variable does not live in NumPy memory."""
        gradients.check_pairs(pairs, self)
        self.build([variable for _, variable in pairs])
        present = gradients.present(pairs, self, self._entries)
        if any(type(v._tensor) is not Tensor or (isinstance(g, Tensor) and type(g) is not Tensor) for g, v in present):
            return None
        rows = self.row_wise and not self._has_options()
        work = []
        for g, variable in present:
            entry = self._entries[variable._key]
            work.append((gradients.fitting(g, variable, self, rows), variable, entry))
        return work if self._has_options() else self._added_up(work)

    def _added_up(self, work: list) -> list:
        """The work with gradients as rules take them: arrays, or `Rows`, which are updated apart from the scratch memory."""
        rows, each = self.row_wise and not self._has_options(), self.of_each
        found = [(gradients.summed(g, rows, each), variable, entry) for g, variable, entry in work]
        return [(g, v, (*entry[:3], None, entry[4]) if type(g) is Rows else entry) for g, v, entry in found]

    def _has_options(self) -> bool:
        return not (
            self.weight_decay is None
            and self.clipnorm is None
            and self.clipvalue is None
            and self.global_clipnorm is None
            and self.loss_scale_factor is None
            and not self.gradient_accumulation_steps
        )

    def _apply(self, work: list) -> None:
        lr = self._rate()
        done = work
        if self._has_options():
            work = self._prepared(work, lr)
        if self._updates_tensors:
            self._update_tensors(work, lr)
        elif work:
            self._update(work, lr)
        if self.use_ema:
            self._average()
        if self._constrained:
            for _, variable, _ in done:
                if variable.constraint is not None:
                    with suspended():
                        variable.assign(variable.constraint(variable))

    def _steps(self) -> int:
        return self._iterations._tensor._array.item() // (self.gradient_accumulation_steps or 1)

    def _update(self, work: list, lr: Any) -> None:
        step = self._steps() + 1
        self._begin(step)
        coefficients = [self._cast_coefficients(dtype, lr, step) for dtype in self._dtypes]
        with WRITING:
            if self._is_ours and alone():
                self._update_in_place(work, coefficients, lr)
                return
        for g, variable, (_, _, index, scratch, slots) in work:
            new = partial(self._update_buffers, g, variable, coefficients[index], len(scratch or ()), lr)
            changed(new, variable, *slots, ours=self._is_ours)

    def _update_in_place(self, work: list, coefficients: list, lr: Any) -> None:
        update = self.update
        if self.weight_decay is not None:
            for _, variable, _ in work:
                self._decay(variable, lr, writable(variable))
        for g, variable, (_, _, index, scratch, slots) in work:
            if scratch is None:
                self._update_large(g, coefficients[index], writable(variable), *map(writable, slots))
            elif slots:
                update(np, coefficients[index], scratch, g, writable(variable), *map(writable, slots))
            else:
                update(np, coefficients[index], scratch, g, writable(variable))

    def _update_buffers(self, g: Any, variable: Variable, k: tuple, scratch: int, lr: Any, *buffers: np.ndarray) -> None:
        """The same for one variable, apart from where others can see it."""
        self._decay(variable, lr, buffers[0])
        if scratch:
            self.update(np, k, tuple([np.empty(g.shape, g.dtype) for _ in range(scratch)]), g, *buffers)
        else:
            self._update_large(g, k, *buffers)

    def _cast_coefficients(self, dtype: np.dtype, lr: Any, step: int) -> tuple:
        # 0-d arrays: a ufunc takes half as long with them as with Python numbers, and they keep the variable's dtype.
        def cast(value: Any) -> np.ndarray:
            return np.asarray(value, dtype)

        return tuple(map(cast, self.coefficients(np, cast(lr), step, cast)))

    def _update_large(self, g: Any, k: tuple, *buffers: np.ndarray) -> None:
        """In blocks of elements; or, for the gradient of a gather, the rows that it touches."""
        each = g.each if type(g) is Rows else None
        options = lambda at: {} if each is None else {"each": at(each)}
        if type(g) is Rows and g.indices is not None:
            parts = [buffer[g.indices] for buffer in buffers]
            scratch = tuple(np.empty((self.scratch, *g.values.shape), g.values.dtype))
            self.update(np, k, scratch, g.values, *parts, **options(np.asarray))
            for buffer, part in zip(buffers, parts):
                buffer[g.indices] = part
            return
        g = np.ascontiguousarray(g.values if type(g) is Rows else g)
        flat = [array.reshape(-1) for array in (g, *buffers)]
        scratch = tuple(np.empty((self.scratch, min(BLOCK, g.size)), buffers[0].dtype))
        for start in range(0, g.size, BLOCK):
            block = lambda array, start=start: array.reshape(-1)[start : start + BLOCK]
            parts = [block(array) for array in flat]
            self.update(np, k, tuple(s[: parts[0].size] for s in scratch), *parts, **options(block))

    def _update_tensors(self, work: list, rate: Any) -> None:
        for _, variable, _ in work if self.weight_decay is not None else ():
            changed(partial(self._decay, variable, rate), variable)
        with suspended():
            lr = self.learning_rate
            for g, variable, _ in work:
                self.update_step(wrap(g), variable, lr)

    # Options

    def _prepared(self, work: list, lr: Any) -> list:
        """Unscale, accumulate and clip the gradients; empty if this step only accumulates."""
        arrays = [g for g, _, _ in work]
        if self.loss_scale_factor is not None:
            arrays = [gradients.mapped(g, lambda a: a / np.asarray(self.loss_scale_factor, a.dtype)) for g in arrays]
        if self.gradient_accumulation_steps:
            arrays = self._accumulate([gradients.summed(g, False, None) for g in arrays], [v for _, v, _ in work])
            if not arrays:
                return []
        arrays = gradients.clipped(arrays, self.clipnorm, self.global_clipnorm, self.clipvalue)
        return self._added_up([(g, variable, entry) for g, (_, variable, entry) in zip(arrays, work)])

    def _accumulate(self, arrays: list, variables: list[Variable]) -> list:
        steps: Any = self.gradient_accumulation_steps
        accumulators = {v._key: a for v, a in zip(self._trainable, self._accumulators)}
        due = (self._iterations.snapshot()._array.item() + 1) % steps == 0
        means: dict[Any, np.ndarray] = {}

        def add(g: np.ndarray, key: Any, total: np.ndarray) -> None:
            total += g
            if due:
                means[key] = np.asarray(total / np.asarray(steps, g.dtype))
                total[...] = 0

        for variable, g in zip(variables, arrays):
            changed(partial(add, g, variable._key), accumulators.pop(variable._key))
        for accumulator in accumulators.values() if due else ():  # of variables without a gradient this time
            changed(_clear, accumulator)
        return [means[variable._key] for variable in variables] if due else []

    def exclude_from_weight_decay(self, var_list: Iterable[Variable] | None = None, var_names: Any = None) -> None:
        """Leave variables out of weight decay: these, and those whose name contains one of ``var_names`` (patterns)."""
        if self.built:
            text = "`exclude_from_weight_decay()` can only be configured before the optimizer is built."
            raise ValueError(message(text, received="one that is built", fix="call it right after making the optimizer"))
        self._undecayed = [variable_of(variable) for variable in var_list or ()], "|".join(var_names or ())

    def _decays(self, variable: Variable) -> bool:
        variables, pattern = self._undecayed
        return all(v is not variable for v in variables) and not (pattern and re.search(pattern, variable.name))

    def _decay(self, variable: Variable, lr: Any, p: np.ndarray) -> None:
        if self.weight_decay is not None and self._decays(variable):
            p -= p * np.asarray(single(self.weight_decay), p.dtype) * np.asarray(lr, p.dtype)

    def _average(self) -> None:
        step = self._steps()

        def average_in(array: np.ndarray, mean: np.ndarray) -> None:
            momentum = np.asarray(self.ema_momentum if step else 0, array.dtype)
            mean[...] = momentum * mean + (np.asarray(1, array.dtype) - momentum) * array

        for variable, average in zip(self._trainable, self._averages):
            changed(partial(average_in, variable.snapshot()._array), average)
        if self.ema_overwrite_frequency and (step + 1) % self.ema_overwrite_frequency == 0:
            self._overwrite_with_average(self._trainable)

    def _overwrite_with_average(self, variables: list[Variable]) -> None:
        averages = {v._key: a for v, a in zip(self._trainable, self._averages)}
        for variable in variables:
            mean = averages[variable._key].snapshot()
            variable.assign(wrap(mean._array.copy()), read_value=False)

    def finalize_variable_values(self, var_list: Iterable[Variable]) -> None:
        """With ``use_ema``: put the averages into the variables."""
        if not self.use_ema:
            return
        variables = [variable_of(variable) for variable in var_list]
        gradients.check_known(variables, self, self._entries)
        self._overwrite_with_average(variables)

    # Gradients of its own

    def scale_loss(self, loss: Any) -> Any:
        """The loss times ``loss_scale_factor``, by which the gradients will be divided."""
        return loss if self.loss_scale_factor is None else loss * self.loss_scale_factor

    def compute_gradients(self, loss: Any, var_list: Any, tape: GradientTape | None = None) -> list[tuple[Any, Variable]]:
        """Pairs of gradient and variable; ``loss`` is a function without arguments, or a tensor that ``tape`` recorded."""
        return gradients.of_loss(loss, var_list, tape, self.loss_scale_factor)

    def minimize(self, loss: Any, var_list: Any, tape: GradientTape | None = None) -> Variable:
        """`compute_gradients`, then `apply_gradients`.

        >>> x = Variable(3.0)
        >>> _ = SGD(0.1).minimize(lambda: x * x, [x])
        >>> round(float(x), 6)
        2.4
        """
        if tape is None and callable(loss):
            tape = GradientTape()  # ours until the end: if every gradient is None, it is asked why
        return self.apply_gradients(self.compute_gradients(loss, var_list, tape))

    # For rules in the manner of Keras

    def assign(self, variable: Variable, value: Any) -> None:
        variable.assign(value)

    def assign_add(self, variable: Variable, value: Any) -> None:
        variable.assign_add(value)

    def assign_sub(self, variable: Variable, value: Any) -> None:
        variable.assign_sub(value)

    def _get_variable_index(self, variable: Variable) -> int:
        return next(i for i, v in enumerate(self._trainable) if v is variable)

    # Configuration

    def get_config(self) -> dict[str, Any]:
        """The arguments to make such an optimizer again, without its state."""
        rate = self._learning_rate
        if isinstance(rate, schedules.LearningRateSchedule):
            rate = schedules.serialize(rate)
        elif isinstance(rate, Variable):
            rate = float(rate._tensor)
        options = (
            "weight_decay clipnorm global_clipnorm clipvalue use_ema ema_momentum ema_overwrite_frequency "
            "loss_scale_factor gradient_accumulation_steps"
        )
        return {"name": self.name, "learning_rate": rate, **{n: getattr(self, n) for n in options.split()}}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Optimizer:
        config = dict(config)
        if isinstance(config.get("learning_rate"), dict):
            config["learning_rate"] = schedules.deserialize(config["learning_rate"], custom_objects)
        return cls(**config)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_entries": [self._entries[v._key][4] for v in self._trainable]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy has its own variables, and those have their own keys."""
        self.__dict__.update(state)
        self._register(state["_entries"])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: {len(self._trainable)} variables, {int(self._iterations)} iterations>"


def squared(xp: Any, g: Any, out: Any, each: Any) -> Any:
    """``g²``, or the sum of the squares of the slices of which g is the sum."""
    return xp.multiply(g, g, out) if each is None else each


def _count(counter: np.ndarray) -> None:
    counter[()] = counter.item() + 1


def _clear(buffer: np.ndarray) -> None:
    buffer[...] = 0


def _unique_name(class_name: str) -> str:
    """`RMSprop` gives rm_sprop, then rm_sprop_1, …"""
    snake = re.sub(r"([a-z])([A-Z])", r"\1_\2", re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", class_name)).lower()
    number = next(_counts.setdefault(snake, itertools.count()))
    return f"{snake}_{number}" if number else snake
