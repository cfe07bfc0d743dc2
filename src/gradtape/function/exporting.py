"""Functions in files: the program of one signature as StableHLO, by `jax.export`.

Lengths that the signature leaves open are symbols of jax while the function is traced: what the program computes holds for all
of them, or the function is refused. A tensor's shape has None there, as in TensorFlow.

The gradient is a program of its own, made by a tape: by our rules and the user's, not by those of jax. It computes the function
again.
"""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from gradtape.core.context import activate, thread
from gradtape.core.tape import GradientTape
from gradtape.core.variable import Variable
from gradtape.errors import UnimplementedError, message
from gradtape.function.autograph import convert
from gradtape.function.decorator import ConcreteFunction, Function, Method, can_compile
from gradtape.function.messages import is_due_to_tracing, without_notes
from gradtape.function.results import as_tensors
from gradtape.function.signature import Call
from gradtape.function.staging import Program
from gradtape.function.state import CHECKS, InitialValueIsTraced, current, nothing_left
from gradtape.ops.execution import Unstageable
from gradtape.values import dtypes, nest
from gradtape.values.convert import convert_to_tensor
from gradtape.values.spec import TensorSpec
from gradtape.values.tensor import Tensor, wrap

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
_PURE = "a function of its arguments and of variables: model(x, training=False)"
_STATIC = (bool, int, float, str, type(None))
_SEED = "seed_generator_state"  # the name that Keras gives to what its generators of random numbers count
_OPEN = "leaves open", "_DimExpr", "Symbolic dimension"  # what messages say of a length that is a symbol
_NO_PLACES = {"jax_hlo_source_file_canonicalization_regex": ".*", "jax_traceback_in_locations_limit": 0}
_lock = threading.RLock()


@dataclass
class Parameters:
    """How a function is called: names of arguments by position, and the values of those that may be left out."""

    names: list[str]
    defaults: dict[str, Any]

    @staticmethod
    def of(function: Any) -> Parameters:
        try:
            found = list(inspect.signature(source_of(function)._python).parameters.values())
        except ValueError:  # written in C, without a signature
            return Parameters([], {})
        placed = [p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        return Parameters(placed, {p.name: p.default for p in found if type(p.default) in _STATIC})

    def placed(self, args: Any, kwargs: dict) -> list:
        """[args, kwargs] in one form: by position as far as possible, nothing left out, the rest in the order of its names."""
        args, kwargs = list(args), dict(kwargs)
        for name in self.names[len(args) :]:
            if name in kwargs:
                args.append(kwargs.pop(name))
            elif name in self.defaults:
                args.append(self.defaults[name])
            else:
                break
        for name, value in self.defaults.items():
            if name not in self.names:
                kwargs.setdefault(name, value)
        return [args, dict(sorted(kwargs.items()))]


@dataclass
class Saved:
    """A program: its bytes, the variables that are its first inputs, its signature, and what it returns."""

    name: str
    blob: bytes
    variables: list[Variable]
    arguments: list[int]  # which tensors of the signature are its other inputs
    specs: Any  # [args, kwargs], with a `TensorSpec` for each tensor
    results: Any  # the structure of the result, with True for each tensor
    checked: bool  # the last output says whether a condition was violated
    gradient: Saved | None = None  # from the tensors and the upstream of floating results: of each of `sources`, or None
    no_gradient: str = ""  # why there is none, where one would be expected

    @property
    def tensors(self) -> list[TensorSpec]:
        return [leaf for leaf in nest.flatten(self.specs) if isinstance(leaf, TensorSpec)]

    def sources(self, tensors: list) -> list:
        """Among the tensors of a call, and then the variables, those that have gradients."""
        return [t for t in tensors if t.dtype.is_trainable] + [v for v in self.variables if v._differentiable]


def source_of(function: Any) -> Function:
    """The function of which this is a signature, or a method."""
    function = function._source if isinstance(function, ConcreteFunction) else function
    return function._bound if isinstance(function, Method) else function


def signatures_of(function: Any) -> list[Any]:
    """[args, kwargs] as specs, for everything that a function was made for: given to it, or called with."""
    if isinstance(function, ConcreteFunction):
        known = [function._specs]
    else:
        source = source_of(function)
        known = [[list(source._specs), {}]] if source._specs is not None else list(source._signatures.values())
    parameters = Parameters.of(function)
    return [parameters.placed(*specs) for specs in known]


def why_no_signature(function: Any) -> str:
    """In words, why nothing is known for which a program of a function could be made."""
    source = source_of(function)
    if source._refusals:
        return f"it was never compiled: {next(iter(source._refusals.values()))}"
    if source._called:
        return "it was called with variables or other objects as arguments, which no program in a file can take"
    return "it was never called with nothing but tensors, numbers and texts, and has no input_signature"


def names_of(function: Any, specs: Any) -> list[str]:
    """The names of the tensors of a signature: those of their descriptions, or of the parameters."""
    args, kwargs = specs
    parameters = Parameters.of(function).names
    spelled = [parameters[i] if i < len(parameters) else f"args_{i}" for i in range(len(args))] + list(kwargs)
    names: list[str] = []
    for name, part in zip(spelled, [*args, *kwargs.values()]):
        leaves = [leaf for leaf in nest.flatten(part) if isinstance(leaf, TensorSpec)]
        names += [leaf.name or (name if len(leaves) == 1 else f"{name}_{n}") for n, leaf in enumerate(leaves)]
    if len(set(names)) != len(names):
        raise ValueError(
            message(
                "Two tensors of a signature have the same name.",
                received=f"{names}",
                fix="tf.TensorSpec(shape, dtype, name=…), with a name for each",
            )
        )
    return names


def export(function: Any, specs: Any) -> Saved:
    """The program of a function for one signature."""
    source = source_of(function)
    name = source._name
    if not can_compile():
        _refuse(name, "a program is made by jax, which is not installed", "pip install 'gradtape[xla]'")
    for leaf in nest.flatten(specs):
        if isinstance(leaf, TensorSpec):
            if leaf.shape.rank is None or leaf.dtype is dtypes.string:
                _refuse(name, f"a program has no argument like {leaf}", "numbers, and the number of axes")
        elif type(leaf) not in _STATIC:
            _refuse(name, f"its signature has a {type(leaf).__name__}", "a function of tensors, and of numbers and texts")
    around = thread.recorders
    try:
        activate(())  # nobody records what only makes a program
        with nothing_left(), _lock, _without_places():
            call = _stand_ins(specs)
            known = source._programs.get((call.key, False))
            if isinstance(known, Program):  # a training step need not be traced once more
                _check(name, known, [])
            body = convert(source._python) if source._autograph else source._python
            saved, outs = _made(name, body, call, specs, may_create=not source._called)
            if saved.sources(call.tensors) and any(out.dtype.is_trainable for out in outs):
                try:
                    saved.gradient = _gradient(saved, body, call, [out for out in outs if out.dtype.is_trainable])
                except Exception as error:  # results alone are worth saving
                    saved.no_gradient = getattr(error, "why", None) or " ".join(str(error).split())
            return saved
    finally:
        activate(around)


def _gradient(saved: Saved, body: Callable, call: Call, targets: list[Tensor]) -> Saved | None:
    """The program of the gradients; None if nothing depends on any source."""

    def gradients(*given: Tensor) -> list:
        tensors, upstream = list(given[: len(call.tensors)]), list(given[len(call.tensors) :])
        args, kwargs = call.rebuild(tensors)
        sources = saved.sources(tensors)
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            result = as_tensors(body(*args, **kwargs), saved.name)
        leaves = [t for t in nest.flatten(result) if t is not None and t.dtype.is_trainable]
        return [None if g is None else convert_to_tensor(g) for g in tape.gradient(leaves, sources, upstream)]

    tensors = [*call.tensors, *targets]
    specs = [[TensorSpec(t.shape, t.dtype) for t in tensors], {}]
    made, _ = _made(f"the gradient of {saved.name}", gradients, Call(tuple(tensors), {}), specs, may_create=False)
    return made if any(made.results) else None


def _made(name: str, body: Callable, call: Call, specs: Any, may_create: bool) -> tuple[Saved, list[Tensor]]:
    """The program of a function, and what stands for its results."""
    program, results, outs = _traced(name, body, call, specs, may_create)
    return _serialized(name, program, call, specs, results), outs


def _traced(name: str, body: Callable, call: Call, specs: Any, may_create: bool) -> tuple[Program, Any, list[Tensor]]:
    """The program, the structure of its result, and the tensors in that, as stand-ins."""
    import jax.numpy as jnp

    found: list = []
    moved: list[Variable] = []

    def flat(*args: Any, **kwargs: Any) -> list:
        result = as_tensors(body(*args, **kwargs), name)
        moved[:] = _without_moving_seeds()
        leaves = nest.flatten(result)
        wrong = sorted({type(leaf).__name__ for leaf in leaves if leaf is not None and not isinstance(leaf, Tensor)})
        if wrong:
            _refuse(name, f"it returns {', '.join(wrong)}", "return tensors")
        tensors = [t for t in leaves if t is not None]
        found[:] = nest.map_structure(lambda leaf: leaf is not None, result), [_hollow(t._array) for t in tensors]
        # A result that is known already would not be one of the program's.
        return [wrap(jnp.copy(t._array)) if type(t) is Tensor else t for t in tensors]

    def make(call: Call, may_create: bool) -> Program:
        return Program(flat, call, may_create=may_create, snapshot=None, taped=False, donate=False, wait=False, looks=False)

    try:
        program = make(call, may_create)
        if program.created:  # once more, as every later call would run
            program = make(call, False)
    except InitialValueIsTraced:
        why = "it was never called, and makes a variable whose first value is computed: call it once before it is saved"
        _refuse(name, why, f"{name}(an example)")
    except Unstageable as error:
        _refuse(name, f"it calls Python: {error}", _PURE)
    except UnimplementedError:
        raise
    except Exception as error:
        _refuse_for(name, error, specs, lambda specs: make(_stand_ins(specs), may_create))
    _check(name, program, moved)
    return program, found[0], found[1]


def _refuse_for(name: str, error: Exception, specs: Any, make: Callable[[Any], Program]) -> NoReturn:
    """Raise what an error means: that a number was asked for which nobody knows yet; else the error, which is the user's."""
    if _is_due_to_lengths(error, specs, make):
        what, fix = "a length that the signature leaves open", "give all lengths in the signature"
    elif is_due_to_tracing(error):
        what, fix = "the value of a tensor", "ops whose results have the same shape whatever the values; tf.cond or tf.where"
    else:
        raise without_notes(error) from error.__cause__
    raise Refused(name, f"it needs to know {what}: {' '.join(str(error).split())[:200]}", fix) from error


def _is_due_to_lengths(error: BaseException | None, specs: Any, make: Callable[[Any], Program]) -> bool:
    """Whether an error, or what led to it, says that it depends on a length that is open; or there is none with lengths."""
    known = nest.map_structure(_with_lengths, specs)
    if known == specs:
        return False
    while error is not None:
        if type(error).__name__ == "InconclusiveDimensionOperation" or any(part in str(error) for part in _OPEN):
            return True
        error = error.__cause__ or error.__context__
    try:
        make(known)
    except (Exception, InitialValueIsTraced):
        return False
    return True


def _with_lengths(leaf: Any) -> Any:
    if not isinstance(leaf, TensorSpec):
        return leaf
    return TensorSpec([2 if n is None else n for n in leaf.shape.as_list()], leaf.dtype, leaf.name)


def _without_moving_seeds() -> list[Variable]:
    """Take back that Keras's generators have moved on, and which: a dropout mask may be drawn that nothing needs."""
    state: Any = current()
    seeds = [variable for variable in state.assigned.values() if _is_seed(variable)]
    for seed in seeds:
        del state.assigned[seed._key]
    return seeds


def _is_seed(variable: Variable) -> bool:
    return variable.name.partition(":")[0].rpartition("/")[2] == _SEED


def _hollow(array: Any) -> Tensor:
    """A tensor of this shape and dtype that has no value."""
    import jax

    tensor = object.__new__(Tensor)
    tensor._array, tensor._key = jax.ShapeDtypeStruct(array.shape, array.dtype), None
    return tensor


def _check(name: str, program: Program, seeds: list[Variable]) -> None:
    """Raise if a program does more than to compute results from arguments and variables, some of which are ``seeds``."""
    assigned = [variable.name for variable in (*program.assigned, *(v for v, _ in program.constant)) if not _is_seed(variable)]
    drawn = program.draws or any(("variable", seed._key) in program.forward.names for seed in seeds)
    for happens, what in (
        (assigned, f"it assigns variables: {', '.join(assigned[:3])}{', …' * (len(assigned) > 3)}"),
        (drawn, "it draws random numbers, which would be the same ones at every call"),
        (program.forward.effects, "it calls Python"),
        (set(program._counted) - {CHECKS}, "it takes the gradient of a loop whose number of steps is not known"),
    ):
        if happens:
            _refuse(name, what, _PURE)


def _stand_ins(specs: Any) -> Call:
    """A call with tensors that have a shape and a dtype and no value; first axes that are open are one and the same length."""
    import jax
    from jax import export as jax_export

    scope, count = jax_export.SymbolicScope(), 0

    def stand_in(leaf: Any) -> Any:
        nonlocal count
        if not isinstance(leaf, TensorSpec):
            return leaf
        lengths = []
        for axis, n in enumerate(leaf.shape.as_list()):
            count += n is None
            lengths.append(str(n) if n is not None else f"length_{count}" if axis else "examples")
        shape = jax_export.symbolic_shape(",".join(lengths), scope=scope) if None in leaf.shape.as_list() else tuple(leaf.shape)
        return _hollow(jax.ShapeDtypeStruct(shape, leaf.dtype.numpy))

    from gradtape.xp import jax as JAX

    with JAX.scope():
        args, kwargs = nest.map_structure(stand_in, specs)
    return Call(tuple(args), kwargs)


def _serialized(name: str, program: Program, call: Call, specs: Any, results: Any) -> Saved:
    import jax
    from jax import export as jax_export

    from gradtape.xp import jax as JAX

    forward = program.forward
    constants = {i: program._constants[which] for i, which in enumerate(forward.names) if which[0] == "constant"}
    kinds = {kind: [i for i, which in enumerate(forward.names) if which[0] == kind] for kind in ("variable", "argument")}
    places = kinds["variable"] + kinds["argument"]
    arguments = [forward.names[i][1] for i in kinds["argument"]]
    # Of an argument that no operation reads, the shape may count.
    unread = [i for i, t in enumerate(call.tensors) if i not in arguments and not all(type(n) is int for n in t._array.shape)]

    def run(*inputs: Any) -> list:
        every = {**constants, **dict(zip(places, inputs))}
        return list(forward.text(*(every[i] for i in range(len(forward.names)))))

    types = [*(forward.types[i] for i in places), *(call.tensors[i]._array for i in unread)]
    compiled = jax.jit(run, keep_unused=True)
    with JAX.scope():
        try:
            exported = jax_export.export(compiled, platforms=PLATFORMS)(*types)
        except Exception:  # some operation is not there on every platform
            exported = jax_export.export(compiled)(*types)
        try:
            blob = bytes(exported.serialize())
        except ImportError as error:
            raise ImportError(message(str(error), fix="pip install 'gradtape[xla]', which has it")) from None
    variables = [program._by_key[forward.names[i][1]] for i in kinds["variable"]]
    return Saved(name, blob, variables, arguments + unread, specs, results, CHECKS in program._counted)


@contextlib.contextmanager
def _without_places() -> Iterator[None]:
    """While inside, programs do not name the files that their operations come from: they are for other machines."""
    import jax

    before = {name: getattr(jax.config, name) for name in _NO_PLACES}
    try:
        for name, value in _NO_PLACES.items():
            jax.config.update(name, value)
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)


class Refused(UnimplementedError):
    """A function that cannot be saved."""

    def __init__(self, name: str, why: str, fix: str) -> None:
        super().__init__(message(f"{name} cannot be saved as a program.", received=f"the function {name}", why=why, fix=fix))
        self.why = why


def _refuse(name: str, why: str, fix: str) -> NoReturn:
    raise Refused(name, why, fix)
