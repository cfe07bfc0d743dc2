"""What Keras's optimizers are built on here: a step runs on raw arrays, by the native optimizer of the same name.

Keras updates one variable after the other in Python, a dozen operations for each. Ours does the same arithmetic in place on the
same variables: those that Keras made hold the state, and are what it saves. An optimizer that Keras has and we do not, or a
class of the user's own, runs Keras's Python. So does every step inside a `StatelessScope`, where nothing may be assigned.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterable
from typing import Any

from keras.src.backend.common import global_state
from keras.src.backend.common.name_scope import name_scope
from keras.src.optimizers import base_optimizer
from keras.src.optimizers.schedules.learning_rate_schedule import LearningRateSchedule

from gradtape import optimizers as native
from gradtape.core.context import suspended
from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.tape import GradientTape
from gradtape.core.variable import Variable, variable_of
from gradtape.errors import message
from gradtape.keras_backend.numpy_elementwise import divide
from gradtape.keras_backend.saving import tell
from gradtape.keras_backend.variables import convert_to_tensor
from gradtape.ops import elementwise
from gradtape.ops.execution import init_scope
from gradtape.optimizers import gradients
from gradtape.optimizers.loss_scale import divided
from gradtape.values.tensor import Tensor

_SLOTS = {
    "SGD": ("momentums",),
    "Adam": ("_momentums", "_velocities", "_velocity_hats"),
    "AdamW": ("_momentums", "_velocities", "_velocity_hats"),
    "Adamax": ("_m", "_u"),
    "Nadam": ("_momentums", "_velocities"),
    "RMSprop": ("_velocities", "_momentums", "_average_gradients"),
    "Adagrad": ("_accumulators",),
    "Adadelta": ("_accumulated_grads", "_accumulated_delta_vars"),
    "Ftrl": ("_accumulators", "_linears"),
    "Lion": ("_momentums",),
}
"""The optimizers that both have, and the attributes with their state in Keras's, in the order in which ours take it."""


class GradtapeOptimizer(base_optimizer.BaseOptimizer):
    """A base class of all of Keras's optimizers."""

    built: bool

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "learning_rate":  # a property, which sets other attributes if need be
            self.__dict__.pop("_native", None)  # made anew with what has changed
        if name.endswith("learning_rate") and isinstance(value, native.schedules.LearningRateSchedule):
            value = schedule_from_native(value)
        elif name == "inner_optimizer":
            value = from_native(value)
        super().__setattr__(name, value)

    def add_variable(self, *args: Any, **kwargs: Any) -> Any:
        variable = super().add_variable(*args, **kwargs)
        tell(self)
        return variable

    def _var_key(self, variable: Any) -> int:
        return id(variable_of(variable))  # Keras's variable and ours that it holds are the same one

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Any]], name: str | None = None) -> Any:
        """Update each variable by its gradient. Returns the number of steps, a variable."""
        pairs = list(grads_and_vars)
        if not (pairs and self.built):
            gradients.check_pairs(gradients.with_variables(pairs), self)
        grads, variables = zip(*pairs)
        self.apply(grads, variables)
        return self._iterations

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Update the variables (default: those that the optimizer was built with) by gradients in the same order."""
        if trainable_variables is not None:
            trainable_variables = list(trainable_variables)
            gradients.check_count(grads, trainable_variables, self)
            if not self.built:
                with init_scope(), name_scope(self.name, caller=self):  # once, even if it happens while a function is traced
                    self.build(trainable_variables)
                self.built = True
                tell(self)
        form = None if global_state.GLOBAL_STATE_TRACKER.__dict__.get("stateless_scope") else self._native_form()
        variables = self._trainable_variables if trainable_variables is None else trainable_variables
        if form and len(grads) == len(variables):
            self._apply_natively(form, grads, variables)
        else:
            with suspended():
                if len(grads) == len(variables):  # if not, Keras says so
                    self._check_variables_are_known(variables)
                    grads = [self._fitting(g, variable) for g, variable in zip(grads, variables)]
                super().apply(grads, trainable_variables)

    def _fitting(self, gradient: Any, variable: Any) -> Any:
        """The gradient as Keras's Python takes it, which would find out in the middle of a step that one does not fit."""
        if gradient is None or self._overwrite_variable_with_gradient(variable):
            return gradient
        gradient = convert_to_tensor(gradient)
        gradients.check_fits(gradient._array, variable_of(variable))
        return gradient

    def _apply_natively(self, form: native.Optimizer, grads: Any, variables: list) -> None:
        if 0 < sum(g is None for g in grads) < len(variables):
            grads, variables = self._filter_empty_gradients(grads, variables)
        form.apply_gradients([(g, variable_of(variable)) for g, variable in zip(grads, variables)])
        for variable in variables:
            if variable.constraint is not None and not isinstance(variable, Variable):
                with suspended():
                    variable.assign(variable.constraint(variable))

    def _native_form(self) -> native.Optimizer | None:
        """The native optimizer on the variables of this one, if there is one for it."""
        form = self.__dict__.get("_native")
        if form is None and self.built:
            form = self.__dict__["_native"] = _native_on(self)
        return form or None

    def compute_gradients(self, loss: Any, var_list: Any, tape: GradientTape | None = None) -> list[tuple[Any, Any]]:
        """Pairs of gradient and variable; ``loss`` is a function without arguments, or a tensor that ``tape`` recorded."""
        one = 1.0
        scale = self.scale_loss(one)
        return gradients.of_loss(loss, var_list, tape, None if scale is one else scale)

    def minimize(self, loss: Any, var_list: Any, tape: GradientTape | None = None) -> Any:
        """`compute_gradients`, then `apply_gradients`."""
        if tape is None and callable(loss):
            tape = GradientTape()  # ours until the end: if every gradient is None, it is asked why
        return self.apply_gradients(self.compute_gradients(loss, var_list, tape))


def _over(g: Any, divisor: Tensor) -> Any:
    """A gradient divided; one of repeated rows stays one, for rules look at each of its slices."""
    if isinstance(g, IndexedSlices):
        return IndexedSlices._of(divide(g.values, divisor), g.indices, g.dense_shape)
    return divide(g, divisor)


class LossScaling(GradtapeOptimizer):
    """What `LossScaleOptimizer` had in TensorFlow's Keras 2: loops that scale and unscale by hand.

    After `get_unscaled_gradients`, gradients are applied as they are; after `scale_loss`, as those of a scaled loss. A
    variable says which, for the parts of a step may be functions that were compiled apart. It is not saved.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        with init_scope():
            self._unscaled = Variable(False, trainable=False, name="unscaled")

    def scale_loss(self, loss: Any) -> Any:
        """The loss times the scale."""
        self._unscaled.assign(False)
        return self._scaled(loss)

    def get_scaled_loss(self, loss: Any) -> Any:
        """The loss times the scale, for `get_unscaled_gradients`; for a function, a function."""
        return (lambda: self._scaled(loss())) if callable(loss) else self._scaled(loss)

    def get_unscaled_gradients(self, grads: Iterable[Any]) -> list:
        """The gradients over the scale, for `apply_gradients`, which then takes them as they are."""
        self._unscaled.assign(True)
        scale = self._scale()._array
        return [divided(g, scale) for g in grads]

    def _stateful_handle_finite_grads(self, grads: Any, trainable_variables: Any) -> None:
        """In the place of Keras's: gradients that are unscaled already are not divided."""
        variables = trainable_variables or self._trainable_variables
        gradients.check_count(grads, variables, self)
        scale, good = self._scale(), convert_to_tensor(self.step_counter) + 1
        divisor = elementwise.where(self._unscaled._tensor, elementwise.ones_like(scale), scale)
        kept = map(self._overwrite_variable_with_gradient, variables)
        unscaled = [g if g is None or keep else _over(g, divisor) for g, keep in zip(grads, kept)]
        self.inner_optimizer.apply(unscaled, trainable_variables)
        grown = good >= self.dynamic_growth_steps
        self.step_counter.assign(elementwise.where(grown, elementwise.zeros_like(good), good))
        self.dynamic_scale.assign(elementwise.where(grown, scale * 2.0, scale))

    def _scale(self) -> Tensor:
        return convert_to_tensor(self.dynamic_scale if self.built else self.initial_scale, "float32")


def _native_on(optimizer: Any) -> native.Optimizer | bool:
    """The native optimizer with the settings of Keras's and on its variables; False if there is none."""
    from keras.src import optimizers

    name = type(optimizer).__name__
    variables = optimizer._trainable_variables
    if name not in _SLOTS or type(optimizer) is not getattr(optimizers, name):
        return False
    if any(optimizer._overwrite_variable_with_gradient(variable) for variable in variables):
        return False
    kind = native.Adam if name == "AdamW" else getattr(native, name)
    form: Any = object.__new__(kind)
    form.__dict__ |= _template(kind).__dict__ | {option: getattr(optimizer, option) for option in ("name", *_options(kind))}
    form._learning_rate = variable_of(optimizer._learning_rate)
    columns = list(filter(None, (getattr(optimizer, attribute, None) for attribute in _SLOTS[name])))
    if len(columns) != sum(map(len, form.slots())):
        return False  # an option that needs slots was changed after they were made
    form._adopt(
        iterations=variable_of(optimizer._iterations),
        trainable=[variable_of(variable) for variable in variables],
        slots=[[variable_of(slot) for slot in row] for row in zip(*columns)] or [[] for _ in variables],
        averages=[variable_of(average) for average in getattr(optimizer, "_model_variables_moving_average", ())],
        accumulators=[variable_of(total) for total in getattr(optimizer, "_accumulated_gradients", ())],
    )
    form._undecayed = [variable_of(v) for v in variables if not optimizer._use_weight_decay(v)], ""
    if name == "Nadam":
        form._product = variable_of(optimizer._u_product)
        form._variables.append(form._product)
    return form


@functools.cache
def _template(kind: type) -> native.Optimizer:
    """An optimizer to make others from without making variables: a step may be traced, where that is not allowed."""
    return kind()


@functools.cache
def _options(kind: type) -> tuple[str, ...]:
    """The arguments of a native optimizer, which are attributes too, but for name and learning rate."""
    names = {**inspect.signature(native.Optimizer).parameters, **inspect.signature(kind).parameters}
    return tuple(name for name in names if name not in ("name", "learning_rate", "args", "kwargs"))


# From native ones


def from_native(optimizer: Any) -> Any:
    """Keras's optimizer with the class, name and settings of a native one, with a state of its own; others as they are."""
    from keras.src import optimizers

    if not isinstance(optimizer, (native.Optimizer, native.LossScale)):
        return optimizer
    if isinstance(optimizer, native.LossScale):
        return optimizers.LossScaleOptimizer(
            from_native(optimizer.inner_optimizer), optimizer.initial_scale, optimizer.growth_steps, optimizer.name
        )
    kind = type(optimizer)
    if getattr(native, kind.__name__, None) is not kind or kind.__name__ not in _SLOTS:
        raise ValueError(
            message(
                f"Could not interpret optimizer identifier: {optimizer!r}",
                why=f"{kind.__name__} is a class of your own on gradtape.optimizers.Optimizer, which Keras cannot run",
                fix="derive it from tf.keras.optimizers.Optimizer, or train with a tape and optimizer.apply_gradients",
            )
        )
    made = getattr(optimizers, kind.__name__)(
        _rate_from_native(optimizer), name=optimizer.name, **{n: getattr(optimizer, n) for n in _options(kind)}
    )
    variables, pattern = optimizer._undecayed
    if variables or pattern:
        made.exclude_from_weight_decay(variables, [pattern] if pattern else None)
    return made


def _rate_from_native(optimizer: native.Optimizer) -> Any:
    rate = optimizer._learning_rate
    if not isinstance(rate, Variable):
        return rate
    own = any(rate is variable for variable in optimizer._variables)
    return float(rate) if own else rate.value  # a variable of the user's: read at every step


class _NativeSchedule(LearningRateSchedule):
    """A schedule of the user's own on our base class."""

    def __init__(self, schedule: native.schedules.LearningRateSchedule) -> None:
        self.schedule = schedule

    def __call__(self, step: Any) -> Any:
        return self.schedule(variable_of(step))

    def get_config(self) -> dict[str, Any]:
        return self.schedule.get_config()


def schedule_from_native(schedule: Any) -> LearningRateSchedule:
    """Keras's schedule with the class and settings of a native one."""
    from keras.src.optimizers import schedules

    if isinstance(schedule, LearningRateSchedule):
        return schedule
    kind = type(schedule)
    if getattr(native.schedules, kind.__name__, None) is not kind:
        return _NativeSchedule(schedule)
    return getattr(schedules, kind.__name__)(**schedule.get_config())


# Into Keras


def install() -> None:
    """Make the classes here bases of Keras's, and let Keras take native optimizers and schedules, and native ones Keras's."""
    from keras.src import optimizers
    from keras.src.optimizers import loss_scale_optimizer, optimizer

    for name in _SLOTS:
        _template(getattr(native, name))
    optimizer.BackendOptimizer = GradtapeOptimizer
    optimizer.Optimizer.__bases__ = (GradtapeOptimizer, base_optimizer.BaseOptimizer)
    scaling = loss_scale_optimizer.LossScaleOptimizer
    scaling.__bases__ = (LossScaling, optimizer.Optimizer)
    scaling.build = init_scope()(scaling.build)  # its own `apply` calls it
    scaling._scaled, scaling.scale_loss = scaling.scale_loss, LossScaling.scale_loss
    scaling._stateful_handle_finite_grads = LossScaling._stateful_handle_finite_grads
    native.schedules.LearningRateSchedule.register(LearningRateSchedule)
    known = optimizers.get

    @functools.wraps(known)
    def get(identifier: Any) -> Any:
        return known(from_native(identifier))

    optimizers.get = sys.modules["keras.optimizers"].get = get  # type: ignore[attr-defined]
