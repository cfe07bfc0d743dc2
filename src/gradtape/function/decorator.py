"""`function`: the decorator, its cache of programs, and how a call finds its way."""

from __future__ import annotations

import functools
import inspect
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import Any

from gradtape.core.callsite import logger
from gradtape.core.context import thread
from gradtape.core.custom import VariableWatcher, record_custom
from gradtape.core.tape import GradientTape, safety
from gradtape.core.variable import Variable
from gradtape.errors import message, shown
from gradtape.function import messages, signature
from gradtape.function.autograph import convert
from gradtape.function.captures import reads_tracked
from gradtape.function.explain import Explanation, explain
from gradtape.function.results import as_tensors, expanded
from gradtape.function.signature import Call
from gradtape.function.staging import MoreSteps, Program, Violated
from gradtape.function.state import InitialValueIsTraced, Snapshot, State, Tracing, current, nothing_left
from gradtape.ops.execution import settings, staging
from gradtape.values import nest
from gradtape.values.spec import TensorSpec
from gradtape.values.tensor import Tensor, wrap


def function(
    func: Callable | None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: str | None = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: Any = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
) -> Any:
    """Compile a function into one XLA program per signature; the first call with new shapes traces it.

    >>> @function
    ... def double(x):
    ...     return x + x
    >>> double(3.0)
    <tf.Tensor: shape=(), dtype=float32, numpy=6.0>

    Python values are part of the signature, tensors count by shape and dtype. What cannot be compiled runs as it is written,
    with the same results; ``jit_compile=True`` makes that an error. ``input_signature`` fixes what may be passed. The other
    arguments are accepted as in TensorFlow.
    """

    def decorate(python_function: Callable) -> Function:
        if not callable(python_function):
            text = "python_function is not a callable object."
            raise TypeError(message(text, received=shown(python_function), fix="@tf.function above def"))
        return Function(python_function, input_signature, bool(jit_compile or experimental_compile), autograph)

    return decorate if func is None else decorate(func)


@functools.cache
def can_compile() -> bool:
    import importlib.util

    return importlib.util.find_spec("jax") is not None


_EAGER: Any = "run as it is written"
_AGAIN: Any = "run another program"


class Function:
    """A Python function with a cache of compiled programs; made by `function`."""

    donate = True  # whether its programs write over the variables that they assign
    wait = True  # for results: on the CPU they are NumPy arrays when a call returns, otherwise jax arrays that may come later
    patience = 0  # once there are several programs, how many calls of a new kind run as they are written before it gets one

    def __init__(
        self, python_function: Callable, input_signature: Any = None, jit_compile: bool = False, autograph: bool = True
    ) -> None:
        self._python = python_function
        self._autograph = autograph
        self._specs = None if input_signature is None else tuple(input_signature)
        self._jit_compile = jit_compile
        self._programs: dict[Any, Any] = {}
        self._signatures: dict[Any, Any] = {}  # by key: the arguments as descriptions, for those who save the function
        self._bounds: dict[Any, dict] = {}  # by signature: how many steps of which loops are kept for gradients
        self._lock = threading.RLock()
        self._called = False  # variables may be created until the first call has ended
        self._traces = 0
        self._retraces = messages.Retraces()
        self._refusals: dict[Any, str] = {}  # by signature: why it runs as it is written
        self._rare: Counter[Any] = Counter()  # by signature: the calls that ran so because they may not come again
        self._methods: dict[int, tuple[Any, Function]] = {}
        self._reads = python_function  # where to look for tensors that are not arguments
        self._instance: Callable[[], Any] = lambda: None
        self._name = getattr(python_function, "__name__", type(python_function).__name__)
        functools.update_wrapper(self, python_function, updated=())

    @property
    def python_function(self) -> Callable:
        """The function as it was written."""
        return self._python

    @property
    def input_signature(self) -> Any:
        return self._specs

    def experimental_get_tracing_count(self) -> int:
        """How many times the Python function was run to make a program."""
        return self._traces

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The function for one signature, given by values or `TensorSpec`s; compiled now if all lengths are known."""
        if not args and not kwargs and self._specs:
            args = self._specs
        return ConcreteFunction(self, args, kwargs)

    def find_nonfinite(self, *args: Any, **kwargs: Any) -> Any:
        """The first op that makes a NaN or infinity when this call is run eagerly; variables are left as they are."""
        args, kwargs = self._bound(args, kwargs)
        call = Call(args, kwargs)
        args, kwargs = call.rebuild(call.tensors) if call.plain else (args, kwargs)
        return import_module("gradtape.inspect.nonfinite").replayed(self._python, args, kwargs)

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """What a call with these arguments would do now: trace or not, and why; which state it has, and what it costs.

        >>> double = function(lambda x: x + x)
        >>> double.explain(1.0)
        <lambda> traces a new program: it is the first call.
        """
        return explain(self, Call(*self._bound(args, kwargs)), _key, can_compile())

    def __repr__(self) -> str:
        return f"<tf.function {self._name}: {len(self._programs)} programs>"

    # Methods

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        known = self._methods.get(id(instance))
        if known is None or known[0]() is not instance:
            with self._lock:  # one function for an instance, whoever asks first
                known = self._methods.get(id(instance))
                if known is None or known[0]() is not instance:
                    known = self._methods[id(instance)] = self._bound_to(instance)
        return Method(instance, known[1])

    def _bound_to(self, instance: Any) -> tuple[Callable, Function]:
        """A function of its own for an instance, with a reference to it."""
        key = id(instance)
        reference: Callable
        try:
            reference = weakref.ref(instance, lambda _: self._methods.pop(key, None))
        except TypeError:  # it stays alive with this function
            reference = lambda: instance
        python_function = self._python

        def method(*args: Any, **kwargs: Any) -> Any:
            return self._body(python_function.__get__(reference()))(*args, **kwargs)

        functools.update_wrapper(method, python_function)
        method.__signature__ = inspect.signature(python_function.__get__(instance))  # type: ignore[attr-defined]
        bound = Function(method, self._specs, self._jit_compile, self._autograph)
        bound._reads, bound._instance = python_function, reference
        return reference, bound

    def _with_bindings(self, bound: Callable[[Callable], Callable]) -> Function:
        """This function and its programs, but what it traces or runs as it is written is ``bound`` of the Python function."""
        python_function = bound(self._python)
        return self if python_function is self._python else _Rebound(self, python_function, bound(self._reads))

    # Calling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._called and not (kwargs or thread.recorders):
            program = self._known(args)
            if program is not None:
                if not program.stateful:  # threads may wait for their results at the same time
                    return program.step(args)
                with self._lock:
                    return program.step(args)
        if self._specs is not None or kwargs:
            args, kwargs = self._bound(args, kwargs)
        return self._run(args, kwargs, None)

    def _known(self, args: tuple) -> Program | None:
        """The program of a plain call, the most frequent one: of tensors, outside of everything, with nothing to look after."""
        kinds = []
        for tensor in args:
            if type(tensor) is not Tensor:
                return None
            array = tensor._array
            kinds.append((array.dtype, array.shape))
        program = self._programs.get(((tuple(kinds), len(args)), False))  # as `_key` has it
        if type(program) is not Program or not program.always_fits:
            return None
        if thread.batch or settings.run_eagerly or current() is not None:
            return None
        return program if not program.checks or program.accepts(args) else None

    def _bound(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments by position, as far as there is one for them."""
        if kwargs:
            bound = inspect.signature(self._python).bind(*args, **kwargs)
            args, kwargs = bound.args, bound.kwargs
        if self._specs is not None:
            args = signature.fitted(args, self._specs)
        return args, kwargs

    def _run(self, args: tuple, kwargs: dict, snapshot: Snapshot | None) -> Any:
        state = current()
        if isinstance(state, Tracing) or settings.run_eagerly or thread.batch or not can_compile():
            return self._inline(args, kwargs, snapshot)
        call = Call(args, kwargs) if args or kwargs else signature.NO_ARGUMENTS
        taped = bool(thread.recorders)
        if not call.plain or (taped and not _recordable()):
            return self._inline(args, kwargs, snapshot)
        if taped and reads_tracked(self._reads, self._instance()):
            return self._eager(call, snapshot)  # a record of this call would know nothing of those tensors
        key = _key(call)
        program = self._programs.get(key)
        if program is None or program is _EAGER or program.stateful:
            with self._lock:  # nobody else traces, or writes what this call reads, before it has ended
                return self._run_program(key, call, snapshot)
        return self._run_program(key, call, snapshot)

    def _run_program(self, key: Any, call: Call, snapshot: Snapshot | None, draws: list | None = None) -> Any:
        """The result of a call; ``draws`` are its random numbers, if it has begun before."""
        program, failure = self._programs.get(key), None
        if program is None and not (snapshot is None and draws is None and self._is_rare(key)):
            program, failure = self._stage(key, call, snapshot)
        if program is None or program is _EAGER or program.captures_tracked():
            result = self._eager(call, snapshot)
            if failure is not None:  # it was the tracing that failed, not the function
                logger.warning(messages.not_compiled(self._name, failure))
                self._programs[key], self._refusals[key] = _EAGER, messages.cause(failure)
        elif program.checks and not program.accepts(call.tensors):
            result = self._eager(call, snapshot)  # which says what is wrong with them
        else:
            if not program.fits(snapshot):
                return self._run_again(key, call, snapshot)
            if draws is None:
                draws = [draw() for draw in program.draws] if snapshot is None else snapshot.draws
            try:
                if program.holds and snapshot is None and current() is None:
                    result = program.step(call.tensors, draws)
                else:
                    with program.lock:
                        result = self._compiled(program, call, program.snapshot(snapshot, draws), snapshot is None)
            except MoreSteps as more:
                self._bounds[key], result = more.bounds, _AGAIN
            except Violated:
                result = _EAGER
            if result is _AGAIN:  # out of the handlers: what is raised now has no other error behind it
                return self._run_again(key, call, snapshot, draws)
            if result is _EAGER:
                result = self._eager(call, snapshot)
        self._called = True
        return result

    def _is_rare(self, key: Any) -> bool:
        """Whether this call is not worth a program yet: one takes as long to make as dozens of calls without it, on the CPU."""
        if not self.patience or self._jit_compile or len(self._programs) < messages.RETRACES:
            return False
        from jax import default_backend

        self._rare[key] += 1
        return default_backend() == "cpu" and self._rare[key] <= self.patience

    def _run_again(self, key: Any, call: Call, snapshot: Snapshot | None, draws: list | None = None) -> Any:
        """With a new program: the shape of a variable has changed, or a loop took more steps than ever before."""
        del self._programs[key]
        return self._run_program(key, call, snapshot, draws)

    def _inline(self, args: tuple, kwargs: dict, snapshot: Snapshot | None) -> Any:
        """Run the Python function here and now, as part of what surrounds the call."""
        body = self._body(self._python)
        if snapshot is not None:
            with State(True, snapshot):
                return body(*args, **kwargs)
        return as_tensors(body(*args, **kwargs), self._name)

    def _body(self, python_function: Callable) -> Callable:
        """A function to call now: while a program is made, with its control flow over tensors converted."""
        return convert(python_function) if self._autograph and staging.inside else python_function

    def _eager(self, call: Call, snapshot: Snapshot | None) -> Any:
        """Run the Python function as it is written; variables change when it has succeeded."""
        args, kwargs = call.rebuild(call.tensors)
        run = lambda: as_tensors(self._python(*args, **kwargs), self._name)
        return State(not self._called, snapshot).run(run)

    def _stage(self, key: Any, call: Call, snapshot: Snapshot | None) -> tuple[Program | None, Exception | None]:
        """The program for a signature; or None, and the error because of which it may be that there is none."""
        taped, bounds = bool(thread.recorders), self._bounds.get(key)
        options: Any = {"snapshot": snapshot, "taped": taped, "bounds": bounds, "donate": self.donate, "wait": self.wait}
        body = convert(self._python) if self._autograph else self._python
        try:
            with nothing_left():
                self._traces += 1
                program: Any = Program(body, call, may_create=not self._called, **options)
                if program.created:  # once more, as every later call would run: nothing may be created then
                    self._traces += 1
                    program = Program(body, call, may_create=False, **options)
        except InitialValueIsTraced:
            return None, None
        except Exception as error:
            due_to_tracing = messages.is_due_to_tracing(error)
            if not due_to_tracing and (self._jit_compile or messages.is_users(error)):
                raise messages.without_notes(error) from error.__cause__
            if self._jit_compile:
                raise messages.refusal(self._name, error) from error
            return None, error
        self._retraces.note(self._name, call, self._argument_name, self._specs is not None or bool(self.patience))
        if (specs := call.described()) is not None:
            self._signatures[call.key] = specs
        self._programs[key] = program
        return program, None

    def _argument_name(self, path: tuple) -> str:
        """An argument, or a part of one, in words."""
        which, *parts = path
        names = list(inspect.signature(self._python).parameters) if isinstance(which, int) else []
        name = repr(names[which]) if names and which < len(names) else repr(which)
        return "".join([f"argument {name}", *(f"[{part!r}]" for part in parts)])

    # Running a program

    def _compiled(self, program: Program, call: Call, start: Snapshot, commit: bool) -> Any:
        arrays = [t._array for t in call.tensors]
        tensors, handed_over = program.run(arrays, start, commit)
        if thread.recorders:
            tensors = self._recorded(program, call, start, tensors, handed_over)
        return program.results.assemble(tensors)

    def _recorded(self, program: Program, call: Call, start: Snapshot, tensors: list, handed_over: list) -> list:
        """The results as one record on every tape: its gradient is the program's backward piece."""
        inputs = call.tensors
        variables = [v for v in program.variables if v._differentiable]
        arrays = [t._array for t in inputs]

        def grad_fn(*upstream: Tensor, variables: Any = ()) -> Any:
            floating = [g for g, t in zip(upstream, tensors) if t.dtype.is_trainable]
            if thread.recorders:
                found = self._differentiated(program)._run((*call.rebuild(inputs), floating), {}, start)
            else:
                found = program.pull(arrays, start, handed_over, [g._array for g in floating])
            rest = iter(found)
            by_input = [next(rest) if t.dtype.is_trainable else None for t in inputs]
            return (by_input, list(rest)) if variables else by_input

        outs = record_custom(self._name, grad_fn, tensors, inputs, variables)
        if program.broken is not None:  # for `tape.explain`
            sources = [*(t for t in inputs if t.dtype.is_trainable), *variables]
            grad_fn.broken = {sources[i]._key: why for i, why in program.broken.items()}  # type: ignore[attr-defined]
        return outs

    def _differentiated(self, program: Program) -> Function:
        """The gradient of a program as a function, which can be differentiated again."""
        if program.derivative is None:
            variables = [v for v in program.variables if v._differentiable]
            places = [i for i, t in zip(program.results.places, program.floating) if t]

            def gradient(args: tuple, kwargs: dict, upstream: list) -> list:
                sources = [t for t in nest.flatten([args, kwargs]) if isinstance(t, Tensor) and t.dtype.is_trainable]
                with GradientTape(watch_accessed_variables=False) as tape:
                    tape.watch([*sources, *variables])
                    leaves = expanded(as_tensors(self._body(self._python)(*args, **kwargs), self._name))
                return tape.gradient([leaves[i] for i in places], [*sources, *variables], upstream)

            program.derivative = Function(gradient)
        return program.derivative


class _Rebound(Function):
    """A function with other bindings of its names, which shares all else with the one that it comes from."""

    def __init__(self, origin: Function, python_function: Callable, reads: Callable) -> None:
        self.__dict__.update(vars(origin), _origin=origin, _python=python_function, _reads=reads)

    _called = property(lambda self: self._origin._called, lambda self, value: setattr(self._origin, "_called", value))
    _traces = property(lambda self: self._origin._traces, lambda self, value: setattr(self._origin, "_traces", value))


def _key(call: Call) -> Any:
    """By what a program is known: the types of its arguments, and the tapes around the call."""
    return call.key, bool(thread.recorders) and (True, safety(thread.recorders))


def _recordable() -> bool:
    """Whether all recorders of this thread understand a call as one record; forward accumulators follow each operation."""
    return all(isinstance(recorder, (GradientTape, VariableWatcher)) for recorder in thread.recorders)


class Method:
    """A function bound to an instance, which it keeps alive; the programs are kept with the instance, weakly."""

    def __init__(self, instance: Any, bound: Function) -> None:
        self.__self__ = instance
        self._bound = bound
        functools.update_wrapper(self, bound, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._bound(*args, **kwargs)

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The method for one signature, which keeps the instance alive."""
        concrete = self._bound.get_concrete_function(*args, **kwargs)
        concrete._method = self
        return concrete

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """What a call with these arguments would do now; as `Function.explain`."""
        return self._bound.explain(*args, **kwargs)

    def _with_bindings(self, bound: Callable[[Callable], Callable]) -> Method:
        """This method, as `Function._with_bindings`."""
        function = self._bound._with_bindings(bound)
        return self if function is self._bound else Method(self.__self__, function)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bound, name)

    def __repr__(self) -> str:
        return f"<bound {self._bound!r} of {self.__self__!r}>"


class ConcreteFunction:
    """A function for one signature."""

    _method: Any = None  # the method that it is a signature of

    def __init__(self, source: Function, args: tuple, kwargs: dict) -> None:
        self._source = source
        self._specs = nest.map_structure(_described, [list(args), kwargs])
        self.structured_input_signature = (tuple(self._specs[0]), self._specs[1])
        if signature.is_plain(self._specs):
            source._signatures.setdefault(("concrete", repr(self._specs)), self._specs)
        if all(s.shape.is_fully_defined() for s in nest.flatten(self._specs) if isinstance(s, TensorSpec)):
            self._prepare()

    def _prepare(self) -> None:
        """Make the program now, without running it."""
        args, kwargs = nest.map_structure(_example, self._specs)
        call = Call(tuple(args), kwargs)
        key = _key(call)
        if can_compile() and not settings.run_eagerly and key not in self._source._programs:
            with self._source._lock:
                self._source._stage(key, call, None)

    @property
    def name(self) -> str:
        return f"__inference_{self._source._name}"

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that the programs made so far use."""
        programs = [p for p in self._source._programs.values() if p is not _EAGER]
        return tuple({v._number: v for p in programs for v in p.variables}.values())

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.variables if v.trainable)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        specs = nest.flatten(self._specs)
        given = nest.flatten([list(args), kwargs])
        if len(given) < len(specs):  # Python values are part of the function
            rest = iter(given)
            given = [next(rest, s) if isinstance(s, TensorSpec) else s for s in specs]
        if len(given) != len(specs):
            raise TypeError(
                message(
                    f"{self.name} got the wrong number of arguments.",
                    received=f"{len(given)}",
                    expected=f"{len(specs)}: {specs}",
                )
            )
        leaves = [signature.fit(value, spec) for value, spec in zip(given, specs)]
        args, kwargs = nest.pack_sequence_as(self._specs, leaves)
        return self._source(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self._source._name}{self.structured_input_signature}>"


def _described(leaf: Any) -> Any:
    if isinstance(leaf, (TensorSpec, Variable)):
        return leaf
    if isinstance(leaf, Tensor) or hasattr(leaf, "__array__"):
        return TensorSpec(leaf.shape, leaf.dtype)
    return leaf


def _example(leaf: Any) -> Any:
    import numpy as np

    return wrap(np.zeros(tuple(leaf.shape), leaf.dtype.numpy)) if isinstance(leaf, TensorSpec) else leaf
