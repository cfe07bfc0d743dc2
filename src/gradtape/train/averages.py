"""`ExponentialMovingAverage`: shadow variables that follow others slowly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradtape.core.context import suspended
from gradtape.core.variable import Variable
from gradtape.errors import message


class ExponentialMovingAverage:
    """``average ← decay · average + (1 − decay) · variable`` at each `apply`; it starts at the variable's value.

    With ``num_updates`` the decay is ``min(decay, (1 + num_updates) / (10 + num_updates))``, so that averages move faster
    in the beginning.

    >>> v = tf.Variable(0.0)
    >>> average = tf.train.ExponentialMovingAverage(decay=0.9)
    >>> average.apply([v]); _ = v.assign(10.0); average.apply([v])
    >>> round(float(average.average(v)), 4)
    1.0
    """

    def __init__(
        self, decay: float, num_updates: Any = None, zero_debias: bool = False, name: str = "ExponentialMovingAverage"
    ) -> None:
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._sources: list[Variable] = []
        self._averages: list[Variable] = []

    @property
    def name(self) -> str:
        return self._name

    def apply(self, var_list: Iterable[Variable]) -> None:
        """Move the averages of these variables; the first call makes them."""
        decay = self._decay
        if self._num_updates is not None:
            count = float(self._num_updates)
            decay = min(decay, (1 + count) / (10 + count))
        with suspended():
            for variable in list(var_list):
                average = self.average(variable)
                if average is None:
                    average = self._new(variable)
                average.assign_sub((average - variable) * (1 - decay), read_value=False)

    def _new(self, variable: Any) -> Variable:
        if not isinstance(variable, Variable):
            raise TypeError(
                message(
                    "ExponentialMovingAverage.apply takes variables.",
                    received=type(variable).__name__,
                    fix="keep the average of a tensor in a variable of your own",
                )
            )
        name = f"{variable.name.removesuffix(':0')}/{self._name}"
        average = Variable(variable.value(), trainable=False, name=name)
        self._sources.append(variable)
        self._averages.append(average)
        return average

    def average(self, var: Variable) -> Variable | None:
        """The average of a variable, or None if `apply` has not seen it."""
        pairs = zip(self._sources, self._averages)
        return next((average for source, average in pairs if source is var), None)

    def average_name(self, var: Variable) -> str:
        """The name of the average of a variable."""
        return f"{var.name.removesuffix(':0')}/{self._name}"

    def variables_to_restore(self, moving_avg_variables: Iterable[Variable] | None = None) -> dict[str, Variable]:
        """Variables by the names under which their averages were saved."""
        wanted = self._sources if moving_avg_variables is None else list(moving_avg_variables)
        return {self.average_name(variable): variable for variable in wanted}

    def _checkpoint_children(self) -> dict[str, Any]:
        return {"averages": self._averages}
