"""A recorded computation and its gradient as formulas: the kernels and derivative rules, run on SymPy expressions.

There is no second set of rules here either. The namespace `SYMBOLIC` runs the kernel of every record on expressions, from the
sources (which become symbols) to the target. The reverse sweep, the same that computes numbers, then passes these records
backwards. So the derivative that is printed is the one that gradtape computes, and comparing it with ``sympy.diff`` checks
gradtape's rules, not SymPy's.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from gradtape.core.asking import leading_to, leaves
from gradtape.core.backprop import PAIR, Sweep
from gradtape.core.context import suspended
from gradtape.core.op import REGISTRY
from gradtape.core.tape import LEAF, GradientTape
from gradtape.core.variable import Variable
from gradtape.derivatives.expressions import SYMBOLIC, Expressions, Missing, expressions
from gradtape.errors import UnimplementedError, message
from gradtape.tangents.forward import as_general
from gradtape.tangents.jacobian import array_of
from gradtape.values import nest


class Formula(tuple):
    """``value, gradients``, and which symbols are in them."""

    symbols: Any
    """The symbol of each source (for an array, the array of its elements' symbols), in the structure of the sources."""
    constants: dict[str, str]
    """The other symbols, by name: values that the computation read but the tape did not keep, and what each of them is."""

    def __new__(cls, value: Any, gradients: Any, symbols: Any, constants: dict[str, str]) -> Formula:
        self = super().__new__(cls, (value, gradients))
        self.symbols, self.constants = symbols, constants
        return self

    def __getnewargs__(self) -> tuple:
        return (*self, self.symbols, self.constants)

    @property
    def value(self) -> Any:
        """The target, as an expression of the symbols."""
        return self[0]

    @property
    def gradients(self) -> Any:
        """The derivatives by the sources, in their structure; None where the target does not depend on one."""
        return self[1]


def to_sympy(tape: GradientTape, target: Any, sources: Any, *, simplify: bool = True, max_size: int = 64) -> Formula:
    """A small recorded computation and its gradient as SymPy expressions: ``value, gradients``, or a `Formula` as a whole.

    ``gradients`` has the structure of ``sources`` and is what ``tape.gradient(target, sources)`` computes, as a formula:
    scalars are expressions, arrays are ``sympy.Array``. Sources are named after their variable or their key in a dict of
    sources, else x, y, z or x0, x1, …; the elements of an array are x_0, x_1, …. Arrays may have up to ``max_size`` elements.

    >>> x = Variable(2.0, name="x")
    >>> with GradientTape() as tape:
    ...     y = tf.sin(x) / x
    >>> value, derivative = to_sympy(tape, y, x)
    >>> print(value, "|", derivative)
    sin(x)/x | (x*cos(x) - sin(x))/x**2

    A tape records what ran: a condition, a rounded value or a stopped gradient is a constant in the formula, as it is in the
    gradient. A tape that is not persistent is used up, as by `gradient`.
    """
    _require_sympy()
    if not isinstance(tape, GradientTape):
        text = "to_sympy reads a GradientTape."
        raise TypeError(message(text, received=type(tape).__name__, fix="with tf.GradientTape() as tape: …"))
    flat, targets = leaves(sources, "source"), leaves(target, "target")
    _check_numeric([*flat, *targets])
    tape._begin("to_sympy")
    try:
        translation = _Translation(tape, flat, _names(sources, flat), max_size)
        with suspended(), SYMBOLIC.scope():
            translation.forward(targets)
            values = [translation.value_of(t) for t in targets]
            gradients = translation.backward(targets, values)
    finally:
        if not tape._persistent:
            tape.records = None
    finished = functools.partial(_finished, simplify=simplify)
    return Formula(
        nest.pack_sequence_as(target, list(map(finished, values))),
        nest.pack_sequence_as(sources, list(map(finished, gradients))),
        nest.pack_sequence_as(sources, [_finished(translation.value_of(s), simplify=False) for s in flat]),
        translation.constants,
    )


def _require_sympy() -> None:
    try:
        import sympy  # noqa: F401
    except ImportError as error:
        raise ImportError(message("to_sympy needs SymPy.", fix="pip install 'gradtape[symbolic]'")) from error


def _check_numeric(leaves: list) -> None:
    for leaf in leaves:
        if array_of(leaf).dtype.kind == "O":
            text = "to_sympy writes formulas of numbers."
            raise TypeError(message(text, received=f"a tensor of {leaf.dtype.name}", expected="tensors of numbers"))


_UNNAMED = re.compile(r"Variable(_\d+)?")


def _names(sources: Any, flat: list) -> list[str]:
    """A name for each source: its key in a dict, the name of its variable, or the next letter."""
    if isinstance(sources, Mapping) and len(sources) == len(flat):
        given: list[str | None] = [str(key) for key in sorted(sources)]
    else:
        given = [s._name if isinstance(s, Variable) and not _UNNAMED.fullmatch(s._name) else None for s in flat]
    count = given.count(None)
    pool = "xyz" if count <= 3 else [f"x{i}" for i in range(count)]
    letters = iter([letter for letter in (*pool, *(f"x{i}" for i in range(2 * len(given)))) if letter not in given])
    return [next(letters) if name is None else name for name in given]


class _Translation:
    """The values of a tape as expressions, by their keys."""

    def __init__(self, tape: GradientTape, sources: list, names: list[str], max_size: int) -> None:
        self.constants: dict[str, str] = {}
        self._tape = tape
        self._sources = sources
        self._max_size = max_size
        self._known: dict[Any, Any] = {}
        self._taken: set[str] = set()
        self._records: dict[Any, tuple] = {}  # those that lead to the target, with expressions in place of kept values
        self._numbers, self._changed = _kept_by_key(tape.records)
        for source, name in zip(sources, names):
            if source._key is None:
                source._key = object()
            if source._key not in self._known:  # one that is given twice has one name
                self._known[source._key], _ = self._symbols(name, array_of(source))
        self._leading = leading_to({source._key for source in sources}, tape.records)

    def _symbols(self, name: str, like: Any) -> tuple[Expressions, str]:
        """Symbols for the elements of an array, and the name that it really got."""
        import sympy

        shape = like.shape
        self._check_size(f"The array {name}", shape)
        name = base = re.sub(r"\W", "_", name)
        number = 1
        while name in self._taken:
            number += 1
            name = f"{base}{number}"
        self._taken.add(name)
        real = None if like.dtype.kind == "c" else True
        found = np.empty(shape, object)
        for place in np.ndindex(shape):
            found[place] = sympy.Symbol("_".join([name, *map(str, place)]), real=real)
        return Expressions(found, like.dtype), name

    def _check_size(self, what: str, shape: tuple[int, ...]) -> None:
        if math.prod(shape) > self._max_size:
            raise ValueError(
                message(
                    f"{what} is too large for formulas.",
                    received=f"shape {shape}, {math.prod(shape)} elements",
                    expected=f"at most {self._max_size} elements",
                    fix="record a smaller case of the same computation, or raise max_size",
                )
            )

    def value_of(self, target: Any) -> Any:
        """The expressions of a target or source; numbers, for one that no tape knows."""
        found = self._known.get(target._key)
        return expressions(array_of(target)) if found is None else found

    # From the sources to the targets

    def forward(self, targets: list) -> None:
        """Run the kernels of the records that the targets depend on."""
        path = self._path({target._key for target in targets})
        self._check_unchanged(path)
        for key, variable in self._tape.variables.items():
            if key in path and key not in self._known:
                name = "w" if _UNNAMED.fullmatch(variable._name) else variable._name
                self._known[key], name = self._symbols(name, array_of(variable))
                self.constants[name] = f"variable {variable.name!r}"
        for key, record in self._tape.records.items():
            if key in path and record[0] is not None:
                self._run(key, as_general(record, key) if record[0] is PAIR else record)

    def _check_unchanged(self, path: set) -> None:
        for key in path.intersection(self._changed):
            raise ValueError(
                message(
                    "A variable changed while the tape recorded, so one symbol would stand for two numbers.",
                    received=" and ".join(map(str, self._changed[key])),
                    fix="assign to it before the tape or after it",
                )
            )

    def _path(self, goals: set) -> set:
        """The keys that the goals depend on, not looking behind a source, unless another source is there."""
        found = goals - {None}
        for key, record in reversed(self._tape.records.items()):
            outputs = () if record[0] is None else (key,) if record[0] is PAIR else record[7]
            if not found.isdisjoint(outputs):
                if self._leading.isdisjoint(record[2]) and all(k in self._known for k in outputs):
                    found.discard(key)
                else:
                    found.update((key, *record[2]))
        return found

    def _run(self, key: Any, record: tuple) -> None:
        """The kernel of one record; its outputs become known."""
        pull, op, keys, shapes, kinds, _, attributes, outputs, described = record
        if not op.rules or op.label in REGISTRY:
            raise _refused(op, "a gradient function of the user's own, whose forward computation no tape records")
        arguments = [self._argument(record, i) for i in range(len(keys))]
        with _naming(op):
            found = op.kernel(SYMBOLIC, *arguments, **attributes)
        results = []
        for k, value in zip(outputs, found if type(found) is tuple else (found,)):
            self._check_size(f"A result of {op.name}", value.shape)
            results.append(value if k is None else self._known.setdefault(k, value))
        kept: dict[str, Any] = {name: _held(value) for name, value in zip(op.inputs, arguments)}
        if op.variadic:
            kept = {op.inputs[0]: tuple(map(_held, arguments))}
        kept["out"] = tuple(map(_held, results)) if type(found) is tuple else _held(results[0])
        pull = op.pull if pull is PAIR else pull
        self._records[key] = (pull, op, keys, shapes, kinds, kept, attributes, outputs, described)

    def _argument(self, record: tuple, i: int) -> Any:
        """One argument of a record's kernel: an expression, a number that the tape kept, or a symbol for a constant."""
        _, op, keys, shapes, kinds, kept, _, _, _ = record
        key, name = keys[i], op.inputs[0 if op.variadic else i]
        if key in self._known:
            return self._known[key]
        value = kept.get(name)
        tensor = value[i] if type(value) is tuple else value
        if tensor is None and key:
            tensor = self._numbers.get(key)
        if tensor is not None:
            array = tensor._host()
            self._check_size(f"The operand {name} of {op.name}", array.shape)
            return array if array.dtype.kind in "biu" else expressions(array)
        if kinds[i].kind in "biu":
            raise _refused(op, f"its operand {name} of {kinds[i].name}, whose values the tape did not keep")
        symbols, symbol = self._symbols(f"c{len(self.constants)}", SimpleNamespace(shape=shapes[i], dtype=kinds[i]))
        self.constants[symbol] = f"operand {name} of {op.name}, shape {shapes[i]}"
        if key:
            self._known[key] = symbols
        return symbols

    # And back

    def backward(self, targets: list, values: list) -> list:
        """The cotangent of each source, from ones at the targets; None where none arrives."""
        keys = [source._key for source in self._sources]
        sweep = Sweep(SYMBOLIC, True, True, self._leading)
        for target, value in zip(targets, values):
            key = target._key
            if self._tape.records.get(key, LEAF) is not LEAF or any(target is source for source in self._sources):
                seed = expressions(np.ones(value.shape, value.dtype))
                present = sweep.cotangents.get(key)
                sweep.cotangents[key] = seed if present is None else SYMBOLIC.add(present, seed)
        for key, record in reversed(self._records.items()):
            with _naming(record[1]):
                sweep.run({key: record}, keys)
        return [sweep.cotangents.get(key) for key in keys]


def _held(value: Any) -> Any:
    """In the place of a tensor that a record keeps."""
    return SimpleNamespace(_array=value)


def _kept_by_key(records: dict) -> tuple[dict[Any, Any], dict[Any, list]]:
    """Every tensor that a record keeps; and of the keys that had two values (a variable was assigned), both."""
    found: dict[Any, Any] = {}
    changed: dict[Any, list] = {}
    for tensor in _kept(records):
        if tensor._key:
            other = found.setdefault(tensor._key, tensor)
            if other._array is not tensor._array and not np.array_equal(other._host(), tensor._host(), equal_nan=True):
                changed[tensor._key] = [other._host().tolist(), tensor._host().tolist()]
    return found, changed


def _kept(records: dict) -> Iterator[Any]:
    for record in records.values():
        if record[0] is PAIR:
            yield from (value for value in record[6:] if value is not None)
        elif record[0] is not None:
            for value in record[5].values():
                yield from value if type(value) is tuple else (value,)


class _naming:
    """Context manager: what goes wrong inside is said of this op."""

    def __init__(self, op: Any) -> None:
        self._op = op

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: Any, error: BaseException | None, __: Any) -> None:
        if isinstance(error, Missing):
            raise _refused(self._op, f"the function {error}, for which there is no expression") from None
        if isinstance(error, (TypeError, AttributeError, ValueError)):
            raise _refused(self._op, f"code that looks at numbers ({error})") from error


def _refused(op: Any, reason: str) -> UnimplementedError:
    return UnimplementedError(
        message(
            f"to_sympy cannot write {op.name} as a formula.",
            received=reason,
            expected="elementwise ops, sums, means, products, extremes, ops that move or index elements, matrix products",
            fix="compute this step from such ops, or ask for a target before it",
        )
    )


# Presentation

# The sizes (operations, symbols) up to which SymPy answers in a second or so; its time grows exponentially with the symbols.
_SIMPLIFIED = 120, 3
_FACTORED = 200, 6


def _finished(found: Any, simplify: bool) -> Any:
    """As the user gets it: None, an expression, or a SymPy array."""
    import sympy

    if found is None:
        return None
    value = expressions(found).value
    elements = [_tidied(e) if simplify else e for e in value.ravel()]
    return sympy.ImmutableDenseNDimArray(elements, value.shape) if value.ndim else elements[0]


def _tidied(expression: Any) -> Any:
    """The shortest of what SymPy makes of an expression. Functions of cases are left alone: they take it minutes."""
    import sympy

    hidden = {case: sympy.Dummy(real=case.is_real) for case in expression.atoms(sympy.Max, sympy.Min, sympy.Piecewise)}
    shown = {dummy: case for case, dummy in hidden.items()}
    plain = expression.xreplace(hidden)
    size = sympy.count_ops(expression), len(expression.free_symbols)
    ways = [
        way for way, (operations, symbols) in ((sympy.simplify, _SIMPLIFIED), (sympy.factor, _FACTORED))
        if size[0] <= operations and size[1] <= symbols
    ]  # fmt: skip
    forms = [way(plain) for way in ways] or [sympy.factor_terms(sympy.powsimp(plain))]
    return min((form.xreplace(shown) for form in (*forms, plain)), key=sympy.count_ops)
