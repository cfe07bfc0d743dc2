"""`while` and `for` in converted code: Python's own loops, until what decides about the next step is a tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gradtape.core.variable import Variable
from gradtape.function.autograph_blocks import Block, ContainerChanged, Step
from gradtape.function.autograph_branches import if_stmt, once
from gradtape.function.autograph_calls import Counted, Rows, condition, is_column, traced
from gradtape.function.autograph_datasets import Pass, is_dataset
from gradtape.function.autograph_values import Changed, Undefined, check_step, placeholder
from gradtape.ops.execution import Unstageable, staging
from gradtape.values.tensor import Tensor

UNROLLED = 16
"""The most steps of a loop over the rows of a tensor that are written out."""
UNROLLED_IF_NEED_BE = 128
"""The same for a loop that cannot be staged, because it appends to a list."""


class _Again(Exception):
    """A loop has to be staged anew, because of something that its first step showed."""


class _Loop:
    """A loop that may become part of a program: its variables, and what is found out about them while it is staged."""

    def __init__(self, body: Callable, get_state: Callable, set_state: Callable, names: tuple) -> None:
        self.body, self.get_state, self.set_state, self.names = body, get_state, set_state, names
        self.maximum: Any = None
        self._before: tuple = ()

    def stage(self, make: Callable[[tuple], tuple]) -> None:
        """Make it part of the program, from variables as they are to what they are after it."""
        from gradtape.function import control

        initial = self._before = self.get_state()
        while True:
            try:
                after = make(self._before)
                break
            except _Again:
                continue
            except control.Mismatch as error:
                self.set_state(initial)
                raise Unstageable("a loop over tensors that changes a Python object") from error
            except BaseException:
                self.set_state(initial)
                raise
        self.set_state(tuple(after))

    def step(self, values: tuple, *row: Any) -> tuple:
        """The variables after one step from ``values``."""
        self.set_state(values)
        block = Block()

        def run() -> tuple:
            self.body(*row)
            return self.get_state()

        after = once(run, block)
        maximum = block.options.get("maximum_iterations")
        if traced(maximum):
            raise Unstageable("maximum_iterations that depend on the value of a tensor")
        if maximum is not None and self.maximum is None:
            self.maximum = maximum
            raise _Again
        self._define(after)
        try:
            check_step(self.names, values, after)
        except Changed as change:
            if "shape_invariants" in block.options:
                raise Unstageable("a loop variable that changes its shape") from change
            raise
        return after

    def _define(self, after: tuple) -> None:
        """Stage the loop anew if a variable got its first value: zeros stand for it, should the loop not run."""
        new = [isinstance(a, Undefined) and not isinstance(b, Undefined) for a, b in zip(self._before, after)]
        if any(new):
            self._before = tuple(placeholder(b) if is_new else a for a, b, is_new in zip(self._before, after, new))
            raise _Again

    def going(self, test: Callable, values: tuple, statement: str) -> Any:
        """A condition, given the variables."""
        self.set_state(values)
        return condition(test(), statement)


# while


def while_stmt(test: Callable, body: Callable, get_state: Callable, set_state: Callable, names: tuple, options: Any) -> None:
    """A ``while`` loop: one of the program, from the step on at which its condition is a tensor."""
    while True:
        going = condition(test(), "while loop")
        if isinstance(going, Tensor) and staging.inside:
            break
        if not going:
            return
        with Step():
            body()
    try:
        _staged_while(_Loop(body, get_state, set_state, names), test)
    except Changed as change:
        raise change.error from None
    except ContainerChanged as error:
        _written_out(test, body, error)


def _staged_while(loop: _Loop, test: Callable) -> None:
    from gradtape.function import control

    loop.stage(
        lambda before: control.while_loop(
            lambda *values: loop.going(test, values, "while loop"),
            lambda *values: loop.step(values),
            before,
            maximum_iterations=loop.maximum,
        )
    )


def _written_out(test: Callable, body: Callable, error: ContainerChanged) -> None:
    """A loop that cannot be staged, if the number of its steps is known, and not large."""
    for _ in range(UNROLLED_IF_NEED_BE):
        going = condition(test(), "while loop")
        if traced(going):
            break
        if not going:
            return
        with Step():
            body()
    raise error


# for


def for_stmt(
    iterated: Any, test: Callable | None, body: Callable, get_state: Callable, set_state: Callable, names: tuple, options: Any
) -> None:
    """A ``for`` loop; ``test``, if there is one, tells before each step whether to go on."""
    if isinstance(iterated, Variable):
        iterated = iterated.value()
    loop = _Loop(body, get_state, set_state, names)
    try:
        if staging.inside and isinstance(iterated, Counted):
            _staged_for(iterated.first, test, loop)
        elif staging.inside and (isinstance(iterated, Rows) or is_column(iterated)):
            _rows(iterated if isinstance(iterated, Rows) else Rows(iterated), test, loop)
        elif staging.inside and is_dataset(iterated):
            _dataset(Pass(iterated), test, loop)
        else:
            _python(iterated, test, loop)
    except Changed as change:
        raise change.error from None


def _python(items: Iterable, test: Callable | None, loop: _Loop) -> None:
    """Python's own loop; once a tensor decides whether it goes on, each further step is a branch, or the rest is staged."""
    for at, item in enumerate(items):
        going = True if test is None else condition(test(), "for loop")
        if traced(going):
            if isinstance(items, range) and len(items) - at > UNROLLED:
                _staged_for(Rows(items[at:]).first, test, loop)
                return
            if at > UNROLLED_IF_NEED_BE:
                raise Unstageable("a long Python loop that a tensor may end")
            step = lambda item=item: loop.body(item)
            if_stmt(going, step, lambda: None, loop.get_state, loop.set_state, loop.names, len(loop.names))
            continue
        if not going:
            return
        with Step():
            loop.body(item)


def _dataset(elements: Pass, test: Callable | None, loop: _Loop) -> None:
    """A loop over a dataset; its last element may be of another shape."""
    if elements.rows is not None:
        _rows(Rows(elements.rows), test, loop)
    if elements.last is not None:
        _python([elements.last], test, loop)


def _rows(rows: Rows, test: Callable | None, loop: _Loop, is_rest: bool = False) -> None:
    """A loop over tensors: short ones are written out, longer ones staged.

    If the first step changes the kind of a variable, it is written out, and the rest is staged.
    """
    if len(rows) <= UNROLLED:
        _each(rows, test, loop)
        return
    try:
        _staged_for(rows.first, test, loop)
    except ContainerChanged:
        if len(rows) > UNROLLED_IF_NEED_BE:
            raise
        _each(rows, test, loop)
    except Changed:
        if is_rest or loop.maximum is not None or (test is not None and traced(condition(test(), "for loop"))):
            raise
        with Step():
            loop.body(next(iter(rows)))
        _rows(rows.after(1), test, loop, is_rest=True)


def _each(rows: Rows, test: Callable | None, loop: _Loop) -> None:
    maximum: Any = None
    for at, row in enumerate(rows):
        going = True if test is None else condition(test(), "for loop")
        if traced(going):
            _staged_for(rows.after(at).first, test, loop, None if maximum is None else maximum - at)
            return
        if not going or (maximum is not None and at >= maximum):
            return
        with Step() as step:
            loop.body(row)
        maximum = step.options.get("maximum_iterations")


def _staged_for(rows: Callable[[Any], Any], test: Callable | None, loop: _Loop, maximum: Any = None) -> None:
    """A loop of the program over ``rows(maximum)``."""
    from gradtape.function import control

    loop.maximum = maximum

    def make(before: tuple) -> tuple:
        going = None if test is None else lambda *values: loop.going(test, values, "for loop")
        return control.for_each(rows(loop.maximum), lambda row, *values: loop.step(values, row), before, going=going)

    loop.stage(make)
