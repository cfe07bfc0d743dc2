"""The variables that a function touches: what they hold inside one run of it, apart from what they hold outside.

While a function runs, a variable's value is looked up in the run's `State`, by thread; the cell itself is written only when
the run has succeeded. So a run that raises changes nothing, other threads never see a value that has no number yet, and eager
code pays nothing: the look-up stands in the place of the cell's descriptor only while some function runs this way.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradtape.core.context import activate, thread
from gradtape.core.variable import Variable, new_number
from gradtape.errors import message
from gradtape.function.holding import LOCK, has_value, settle_to, settled
from gradtape.function.ranges import Range
from gradtape.ops.execution import Unstageable, staging
from gradtape.values.placement import here
from gradtape.values.tensor import Tensor, wrap

_CREATED_LATER = (
    "tf.function only supports singleton tf.Variables created on the first call. Make sure the tf.Variable is only created "
    "once or created outside tf.function. See https://www.tensorflow.org/guide/function#creating_tfvariables for more "
    "information."
)
_cell: Any = Variable.__dict__["_tensor"]
CHECKS = ("checks",)
"""The place of all conditions that a program checks while it runs: together they are one number, 1 if any does not hold."""
RANGES = ("ranges",)
"""And of those that the program need not check where the host can look at the arguments instead."""


class InitialValueIsTraced(BaseException):
    """A variable's initial value is part of the program; not an Exception, so that no handler of the body stops it."""


class _Mark:
    """Stands for a thread, and ends with it."""


class _Thread(threading.local):
    state: State | None = None

    def __init__(self) -> None:
        self.mark = _Mark()


_thread = _Thread()


def current() -> State | None:
    """The innermost run of a function in this thread."""
    return _thread.state


def held(variable: Variable) -> Tensor:
    """What a variable holds, for whoever starts a run now."""
    state = _thread.state
    return settled(variable) if state is None else state.read(variable)


def held_by(variables: list[Variable]) -> dict[Any, Tensor]:
    """What these variables hold, by key."""
    state = _thread.state
    read = settled if state is None else state.read
    return {v._key: read(v) for v in variables}


def hold(variable: Variable, tensor: Tensor) -> None:
    """Replace what a variable holds, in the surrounding run if there is one."""
    state = _thread.state
    if state is None:
        settle_to(variable, tensor)
    else:
        state.write(variable, tensor)


def hold_all(variables: list[Variable], tensors: list[Tensor]) -> None:
    """Replace what these variables hold: an interruption comes before the first of them or after the last."""
    for variable, tensor in zip(variables, tensors):
        tensor._key = variable._key
    state = _thread.state
    if state is not None:
        for variable, tensor in zip(variables, tensors):
            state.write(variable, tensor)
        return
    with LOCK:
        for variable in variables:
            settled(variable)
        deque(map(_cell.__set__, variables, tensors), maxlen=0)  # no line of Python in between


VALUE = property(held, hold)
_installing = threading.Lock()
_running: weakref.WeakSet[_Mark] = weakref.WeakSet()


def _install(runs: bool) -> None:
    """Say whether this thread runs a function. Threads are named, not counted: after an interruption it can be said again."""
    with _installing:
        (_running.add if runs else _running.discard)(_thread.mark)
        setattr(Variable, "_tensor", VALUE if _running else _cell)  # noqa: B010  # a slot, to type checkers


@contextmanager
def nothing_left() -> Iterator[None]:
    """Context manager: an interruption just as a run inside begins or ends leaves nothing of it behind in this thread."""
    around, recorders = _thread.state, thread.recorders
    try:
        yield
    finally:
        activate(recorders)  # a tape inside that is interrupted as it ends would go on
        while _thread.state is not around:
            _thread.state.__exit__()  # type: ignore[union-attr]
        if around is None:
            _install(False)


class Snapshot:
    """What a run began with: the value of each variable by its key, and the random numbers in the order of drawing."""

    def __init__(self, values: dict[Any, Tensor], draws: list) -> None:
        self.values = values
        self.draws = draws


class State:
    """Context manager: what variables hold inside one run; `commit` afterwards makes it what they hold outside."""

    def __init__(self, may_create: bool, snapshot: Snapshot | None = None) -> None:
        self.may_create = may_create
        self.snapshot = snapshot
        self.created: list[Variable] = []
        self.lifted: dict[Any, Variable] = {}  # by key, in the order of first use
        self.assigned: dict[Any, Variable] = {}
        self.values: dict[Any, Tensor] = {}
        self._outer: State | None = None

    def __enter__(self) -> State:
        _install(True)  # first: an interruption now leaves a slower way of reading behind, until some function has run
        self._outer, _thread.state = _thread.state, self
        return self

    def __exit__(self, *_: object) -> None:
        ended = None
        while ended is not self and _thread.state is not None:  # first those inside of it whose end was interrupted
            ended = _thread.state
            _thread.state = ended._outer
        if _thread.state is None:
            _install(False)

    def run(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """The result of a call; variables change when it has succeeded, all at once."""
        with nothing_left(), self:
            result = function(*args, **kwargs)
        self.commit()
        return result

    def outside(self, variable: Variable) -> Tensor:
        """The value that this run begins with."""
        if self.snapshot is not None and variable._key in self.snapshot.values:
            return self.snapshot.values[variable._key]
        return settled(variable) if self._outer is None else self._outer.read(variable)

    def begin(self, variable: Variable) -> Tensor:
        """The first read of a variable."""
        return self.outside(variable)

    def read(self, variable: Variable) -> Tensor:
        key = variable._key
        if key not in self.values:
            self.values[key] = self.begin(variable)
            self.lifted[key] = variable
        return self.values[key]

    def write(self, variable: Variable, tensor: Tensor) -> None:
        key = variable._key
        if key not in self.values and not has_value(variable):
            self._create(variable, tensor)
            return
        self.values[key] = tensor
        self.assigned[key] = variable

    def _create(self, variable: Variable, tensor: Tensor) -> None:
        if not self.may_create:
            raise ValueError(
                message(
                    _CREATED_LATER,
                    received=f"a new variable {variable.name!r} of shape {variable.shape}",
                    fix="make the variable once, outside, or: if self.v is None: self.v = tf.Variable(…)",
                )
            )
        self.check_initial(tensor)
        _cell.__set__(variable, tensor)
        self.created.append(variable)

    def check_initial(self, tensor: Tensor) -> None:
        """Raise if this cannot be the first value of a variable."""

    def commit(self) -> None:
        """Make what was assigned visible outside, unless the run began with a snapshot of the past."""
        if self.snapshot is None:
            hold_all(list(self.assigned.values()), [self.values[key] for key in self.assigned])


def _call(function: Callable, arrays: list) -> None:
    from gradtape.xp.jax_host import tell

    tell(function, arrays)


def _ask(function: Callable, example: np.ndarray, arrays: list) -> Any:
    from gradtape.xp.jax_host import ask

    return ask(function, example.shape, example.dtype, *arrays)


@functools.cache
def waits_anyway() -> bool:
    """Whether programs run where their results are: elsewhere, what a program finds wrong would have to be waited for."""
    from jax import default_backend

    return default_backend() == "cpu"


class Tracing(State):
    """A run on tracers: variables and random numbers become inputs of the program that is being made."""

    def __init__(self, may_create: bool, snapshot: Snapshot | None, lift: Callable[[Any, Any], Any]) -> None:
        super().__init__(may_create, snapshot)
        self.lift = lift  # from a name and an array to a tracer that stands for any such array
        self.on_first_read: Callable[[Variable], None] = lambda variable: None
        self.draws: list[Callable[[], Any]] = []
        self.place: tuple = ()  # where in the function this is: loops are counted, so that a place has a name
        self.needs: dict[tuple, Tensor] = {}  # by place: how many steps a loop took whose steps are kept for its gradient
        self.bounds: dict[tuple, int] = {}  # and how many are kept
        self.ranges: list[Range] = []  # in which the host may see indices to be
        self.trace: Any = None  # jax's, to which values belong that can be results of the whole program
        self._first: dict[Any, Any] = {}  # by key: the arrays that stand for what variables held when the call began
        self._loops = 0
        self.made_outside = False  # whether variables were made in an `init_scope`: code that looks for them runs differently
        self.journal: Any = None  # a tape that records everything, if the function asks for `tf.gradients`

    def next_place(self) -> tuple:
        """The name of the loop or branch that begins now."""
        self._loops += 1
        return (*self.place, self._loops)

    def bound(self, place: tuple, first: int) -> int:
        """How many steps to keep of the loop at this place."""
        return self.bounds.setdefault(place, first)

    def require(self, holds: Any) -> None:
        """Let the program find out whether this array is true everywhere; if it is not, the function runs as it is written."""
        import jax.numpy as jnp

        self._require(CHECKS, jnp.logical_not(jnp.all(holds)).astype(np.int32))

    def _require(self, place: tuple, failed: Any) -> None:
        import jax.numpy as jnp

        before = self.needs.get(place)
        self.needs[place] = wrap(failed if before is None else jnp.maximum(before._array, failed))

    def within(self, array: Any, end: int | tuple[int, ...], always: bool) -> None:
        """Let a call be refused if these indices are out of range and its arguments decide them; ``always``: whoever does."""
        found = Range(array, end, always)
        if self.trace is None or getattr(array, "_trace", None) is not self.trace or any(map(found.same, self.ranges)):
            return  # of another trace is what jax transforms
        self.ranges.append(found)
        if always and waits_anyway():
            self._require(RANGES, found.failed())

    def __enter__(self) -> State:
        self._device = here.device
        super().__enter__()
        staging.inside, staging.draw, staging.is_first = True, self.draw, self.is_first
        staging.call, staging.ask, staging.leave = _call, _ask, self.leave
        here.device = None  # the program decides where it runs
        return self

    def __exit__(self, *_: object) -> None:
        staging.inside, staging.draw, staging.is_first = False, None, None
        staging.call, staging.ask, staging.leave = None, None, None
        here.device = self._device
        super().__exit__()

    @contextmanager
    def leave(self) -> Iterator[None]:
        """Context manager: outside of this run and of those around it, where variables hold what they held before."""
        kept, state, device = dict(vars(staging)), _thread.state, here.device
        vars(staging).clear()
        _thread.state, here.device = None, self._device
        number = new_number()
        try:
            yield
        finally:
            self.made_outside |= new_number() > number + 1
            vars(staging).update(kept)
            _thread.state, here.device = state, device
            _install(state is not None)  # a function that ran outside has ended

    def begin(self, variable: Variable) -> Tensor:
        array = self.outside(variable)._array
        if array.dtype.kind == "O":
            raise Unstageable(f"the string variable {variable.name!r}")
        tensor = wrap(self.lift(("variable", variable._key), array))
        tensor._key = variable._key
        self._first[variable._key] = tensor._array
        self.on_first_read(variable)
        return tensor

    def first(self, variable: Variable) -> Any:
        """The array that stands for what a variable held when the call began."""
        if variable._key not in self._first:
            self.begin(variable)
            self.lifted[variable._key] = variable
        return self._first[variable._key]

    def draw(self, thunk: Callable[[], Any], example: Any) -> Any:
        """Random numbers, drawn anew at every call."""
        if not isinstance(example, (np.ndarray, list)):
            raise Unstageable("this kind of random number")
        self.draws.append(lambda: np.asarray(thunk()))
        return self.lift(("draw", len(self.draws) - 1), np.asarray(example))

    def is_first(self, variable: Variable, array: Any) -> bool:
        """Whether this is the array that stands for what a variable held when the call began."""
        key = variable._key
        return key in self.values and key not in self.assigned and self.values[key]._array is array

    def check_initial(self, tensor: Tensor) -> None:
        if type(tensor) is not Tensor:
            raise InitialValueIsTraced
