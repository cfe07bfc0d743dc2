"""Restoring: match the objects of a program with those in a checkpoint, check them all, then assign.

Objects are matched from the root by the names of attributes, not by the names of variables. What the program has not made
yet is restored when it is made: a `Module` and an optimizer tell (through ``_deferred``) when they get something new. Lists and
dictionaries that lack something are replaced by such that tell, until they have it.
"""

from __future__ import annotations

import difflib
import logging
import weakref
from collections.abc import Callable
from typing import Any

from gradtape.core.variable import Variable, variable_of
from gradtape.errors import InvalidArgumentError, message
from gradtape.ops.execution import init_scope
from gradtape.optimizers.base import Optimizer
from gradtape.train import growing, objects
from gradtape.train.objects import Node
from gradtape.values import dtypes
from gradtape.values.tensor import wrap

_SHOWN = 6
COUNTER = "save_counter"  # only `save` keeps it, so that nobody needs to have it


class Deferred:
    """What an object calls when it has something new that a checkpoint may know. Copies of the object go without."""

    def __init__(self, restoration: Restoration, number: int) -> None:
        self.restoration = restoration
        self.number = number

    def __call__(self, owner: Any, attribute: str | None = None) -> None:
        if attribute is None:
            self.restoration.restore([(self.number, owner)])
            return
        child = self.restoration.below(self.number).get(attribute)
        if child is None:
            return
        value = growing.plain(getattr(owner, attribute))
        if objects.can_be_followed(value):
            self.restoration.restore([(child, variable_of(value))])
            if objects.is_container(value):
                self.restoration.stand_in(self.number, owner)

    def attached(self, parts: list[tuple[str, Any]]) -> None:
        """These were put into a container under these names. What has its values already may have been moved: it is left."""
        below, known = self.restoration.below(self.number), self.restoration.number_of
        named = [(below[name], variable_of(growing.plain(part))) for name, part in parts if name in below]
        fresh = [(n, part) for n, part in named if id(part) not in known and objects.can_be_followed(part)]
        if fresh:
            self.restoration.restore(fresh)
            nested = any(objects.is_container(part) for _, part in fresh)
            for owner in self.restoration.live.get(self.number, ()) if nested else ():
                self.restoration.stand_in(self.number, owner)

    def __reduce__(self) -> tuple:
        return type(None), ()


class _Leftovers:
    """Logs, when the restoration is over, which saved values nobody received. Holds no object of the program."""

    def __init__(self, index: Any) -> None:
        self.index = index
        self.resolved: set[int] = set()
        self.expected = False

    def unresolved(self) -> list[int]:
        saved = enumerate(self.index.objects)
        values = (n for n, node in saved if ("tensor" in node or "state" in node) and node["path"] != COUNTER)
        return [n for n in values if n not in self.resolved]

    def __call__(self) -> None:
        left = [] if self.expected else [_name(self.index, number) for number in self.unresolved()]
        if left:
            logging.getLogger("gradtape").warning(
                "The checkpoint %s has values that were not restored: %s. If that is meant to be so, say "
                "restore(...).expect_partial(); restore(...).assert_consumed() raises an error instead.",
                self.index.prefix,
                _listed(left),
            )


class _StandIn:
    """Where something stands for a container that lacks parts, and those in it that tell when they get them."""

    def __init__(self, holder: Any, new: Any, old: Any, waiting: list[Any]) -> None:
        self.holder, self.new, self.old, self.waiting = holder, new, _without(old), waiting
        self.asked = [one._deferred for one in waiting]

    def ended(self, restoration: Restoration) -> bool:
        """Whether nothing is lacking any more, or another restoration has taken over; then everything is as before."""
        now = [one._deferred for one in self.waiting]
        if any(a is not b and a is not None for a, b in zip(now, self.asked)):
            return True
        if any(restoration.lacks(deferred.number) for deferred in self.asked):
            return None in now
        for one in self.waiting:
            one._deferred = None
        growing.replace(self.holder, self.new, self.old)
        return True


def _without(part: Any) -> Any:
    """A container with nothing in it that stands for something else."""
    if not isinstance(part, tuple):
        return growing.plain(part)
    found = list(map(_without, part))
    return part if all(a is b for a, b in zip(found, part)) else _remade(part, found)


def _remade(part: tuple, parts: list[Any]) -> tuple:
    return type(part)(*parts) if hasattr(part, "_fields") else type(part)(parts)


class Restoration:
    """One reading of one checkpoint: which of its objects have found theirs in the program."""

    def __init__(self, index: Any, root: Any) -> None:
        self.index = index
        self.root = root
        self.number_of: dict[int, int] = {}  # of a live object, by id
        self.live: dict[int, list[Any]] = {}  # by number; more than one where the program split what was shared
        self.added: dict[int, list[Any]] = {}  # to `live` by the latest call of `restore`
        self.stand_ins: list[_StandIn] = []
        self.leftovers = _Leftovers(index)
        weakref.finalize(self, self.leftovers)
        index.open()  # now: what waits is served even if the checkpoint is deleted meanwhile
        self.restore([(0, root)])

    # Matching

    def restore(self, pairs: list[tuple[int, Any]]) -> None:
        """Match these objects and all below them; nothing is assigned unless everything fits."""
        self.added = {}
        try:
            visited, matched = self._match(pairs)
            assignments = [self._assignment(number, value) for number, value in matched]
            self.index.verify()  # the rest too: what the program makes later relies on it
        except BaseException:
            self._forget()
            self.leftovers.expected = True  # the error says more
            raise
        with init_scope():  # where a function is traced, what it has just made begins with these values
            for assign in assignments:
                assign()
        self.leftovers.resolved.update(number for number, _ in matched)
        for number, value in visited:
            self._wait(number, value)
        self.stand_ins = [each for each in self.stand_ins if not each.ended(self)]

    def _match(self, pending: list[tuple[int, Any]]) -> tuple[list, list]:
        """The pairs of a saved and a live object below these; and of them those that were not matched before."""
        visited: dict[tuple[int, int], tuple[int, Any]] = {}
        matched = []
        for number, value in pending:  # grows while it is walked
            if (number, id(value)) in visited or not self._fits(number, value) or self._replaces(number, value):
                continue
            visited[number, id(value)] = number, value
            if self._is_new(number, value):
                matched.append((number, value))
            below = {**objects.containers(value), **objects.children(value)}
            pending.extend((child, below[name]) for name, child in self.below(number).items() if name in below)
        for number, value in visited.values():
            if isinstance(value, Optimizer):  # last: a slot is found through its variable
                slots = self._slots(self.index.objects[number], value)
                matched += [pair for pair in slots if self._is_new(*pair)]
        return list(visited.values()), matched

    def _fits(self, number: int, value: Any) -> bool:
        """A variable for a saved tensor, a state for a saved state; anything else is a match of names alone."""
        saved = self.index.objects[number]
        return ("tensor" in saved) == isinstance(value, Variable) and ("state" in saved) == objects.has_state(value)

    def _replaces(self, number: int, value: Any) -> bool:
        """Whether the program made this in place of what was restored before: then its new value counts."""
        found = self.live.get(number, ())
        earlier = len(found) > len(self.added.get(number, ()))
        return earlier and objects.has_value(value) and all(other is not value for other in found)

    def _is_new(self, number: int, value: Any) -> bool:
        known = self.number_of.get(id(value), number)
        if known != number and self._value_of(known) != self._value_of(number):
            first, second = (_name(self.index, n) for n in (known, number))
            raise ValueError(
                message(
                    f"Two values in the checkpoint {self.index.prefix} belong to one object of the program.",
                    received=f"{first!r} and {second!r}, which were different objects when they were saved",
                    expected="objects that are separate in the checkpoint are separate in the program",
                )
            )
        found = self.live.setdefault(number, [])
        if any(other is value for other in found):
            return False
        found.append(value)
        self.added.setdefault(number, []).append(value)
        self.number_of.setdefault(id(value), number)
        return True

    def _forget(self) -> None:
        """Undo what the call of `restore` that has failed has added."""
        for number, values in self.added.items():
            del self.live[number][-len(values) :]
            if not self.live[number]:
                del self.live[number]
            for value in values:
                if self.number_of.get(id(value)) == number:
                    del self.number_of[id(value)]

    def _value_of(self, number: int) -> Any:
        saved = self.index.objects[number]
        return self.index.entries[saved["tensor"]] if "tensor" in saved else saved.get("state")

    def _slots(self, saved: dict, optimizer: Optimizer) -> list[tuple[int, Variable]]:
        """Slots of the same variable where the checkpoint knows the variables, else of the same position."""
        slots = saved.get("slots", ())
        known = any(self.live.get(slot["variable"]) for slot in slots)
        numbers = {(slot["variable" if known else "position"], slot["name"]): slot["object"] for slot in slots}
        pairs = []
        for position, name, variable in objects.optimizer_slots(optimizer):
            owner = self.number_of.get(id(optimizer._trainable[position])) if known else position
            if (owner, name) in numbers:
                pairs.append((numbers[owner, name], variable))
        return pairs

    # Assigning

    def _assignment(self, number: int, value: Any) -> Callable[[], Any]:
        saved = self.index.objects[number]
        if "tensor" in saved:
            name = saved["tensor"]
            _check(name, self.index.entries[name], value)
            array = self.index.read(name)
            return lambda: value.assign(wrap(array), read_value=False)
        if "state" in saved:
            state = objects.unpack(saved["state"], self.index.read)
            return lambda: value._restore(state)
        return lambda: None

    # Waiting

    def below(self, number: int) -> dict[str, int]:
        """The numbers of what stood directly below an object when it was saved, by local name."""
        return self.index.objects[number].get("children", {})

    def lacks(self, number: int, seen: frozenset[int] = frozenset()) -> bool:
        """Whether something has not been found yet that stood below an object, or in a container there."""
        slots = (slot["object"] for slot in self.index.objects[number].get("slots", ()))
        inner = [n for n in self.below(number).values() if n not in seen]
        if any(n not in self.live for n in (*inner, *slots)):
            return True
        containers = (n for n in inner if objects.is_container(self.live[n][0]))
        return any(self.lacks(n, seen | {number}) for n in containers)

    def _wait(self, number: int, value: Any) -> None:
        """Ask an object to say when it gets what it lacks."""
        waiting = Deferred(self, number) if self.lacks(number) else None
        for owner in objects.owners(value):
            if hasattr(type(owner), "_deferred"):
                owner.__dict__["_deferred"] = waiting
        self.stand_in(number, value)

    def stand_in(self, number: int, value: Any) -> None:
        """Lists and dictionaries cannot say so: what can takes the places of those below an object that lack something."""
        below = self.below(number)
        for holder in [] if isinstance(value, tuple) else objects.holders(value):
            for name, part in objects.named(holder).items():
                if name in below and objects.is_container(part):
                    new, waiting = self._standing(below[name], part)
                    if waiting and not any(each.holder is holder and each.new is new for each in self.stand_ins):
                        growing.replace(holder, part, new)
                        self.stand_ins.append(_StandIn(holder, new, part, waiting))

    def _standing(self, number: int, part: Any) -> tuple[Any, list[Any]]:
        """What stands for a container while it lacks something, and those in it that tell."""
        if isinstance(part, tuple):
            return self._standing_inside(number, part)
        kept = growing.plain(part)
        if not growing.can_grow(kept) or number not in self.live or not self.lacks(number):
            return part, []
        known = [one for each in self.stand_ins for one in each.waiting if one._kept is kept]
        made = part if part is not kept else known[0] if known else growing.growing(kept)
        if made._deferred is None or made._deferred.restoration is not self:
            made._deferred = Deferred(self, number)
        return made, [made]

    def _standing_inside(self, number: int, part: tuple) -> tuple[Any, list[Any]]:
        below = self.below(number)
        found = {n: self._standing(below[n], p) if n in below else (p, []) for n, p in objects.named(part).items()}
        parts = [new for new, _ in found.values()]
        same = all(a is b for a, b in zip(parts, part))
        return part if same else _remade(part, parts), [one for _, inner in found.values() for one in inner]

    # Reporting

    def again(self) -> None:
        """Restore what was added to lists and to plain objects, which do not tell."""
        self.restore([(0, self.root)])

    def unresolved(self) -> list[str]:
        """The saved values that no object of the program has received."""
        return [_name(self.index, number) for number in self.leftovers.unresolved()]

    def unmatched(self) -> list[Node]:
        """The objects of the program that have received no value."""
        nodes = objects.collect(self.root)
        values = (n for n in nodes if objects.has_value(n.value) and n.path != COUNTER)
        return [n for n in values if id(n.value) not in self.number_of]


def _name(index: Any, number: int) -> str:
    return index.objects[number]["path"] or "(root)"


def _check(name: str, entry: dict, variable: Variable) -> None:
    shape, dtype = tuple(entry["shape"]), dtypes.as_dtype(entry["dtype"])
    if not variable.shape.is_compatible_with(shape):
        raise ValueError(
            message(
                f"Received incompatible tensor with shape {shape} when attempting to restore variable with shape "
                f"{variable.shape} and name {variable.name}.",
                received=f"{name} of shape {shape}",
                expected=f"shape {variable.shape}; nothing was restored",
            )
        )
    if dtype is not variable.dtype:
        raise InvalidArgumentError(
            message(
                f"tensor_name = {name}; expected dtype {variable.dtype.word} does not equal original dtype {dtype.word}",
                received=f"a saved tensor of dtype {dtype.name} for variable {variable.name!r}",
                expected=f"dtype {variable.dtype.name}; nothing was restored",
                fix=f"make the variable with dtype={dtype!r}",
            )
        )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(repr(name) for name in names[:_SHOWN]) + more


class LoadStatus:
    """What `Checkpoint.restore` returns: assertions about how much was restored. All return the status itself."""

    def __init__(self, restoration: Restoration) -> None:
        self._restoration = restoration

    def assert_consumed(self) -> LoadStatus:
        """Raise unless every saved value has an object, and every object in the program a value."""
        self._restoration.again()
        left = self._restoration.unresolved()
        if left:
            raise AssertionError(self._report(f"Unresolved object in checkpoint (root).{left[0].replace('/', '.')}"))
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self) -> LoadStatus:
        """Raise unless every object in the program has received a value."""
        self._restoration.again()
        found = self._restoration.unmatched()
        if found:
            shown = [node.value for node in found[:_SHOWN]]
            raise AssertionError(
                self._report(
                    f"Found {len(found)} Python objects that were not bound to checkpointed values, likely due to changes in "
                    f"the Python program. Showing {len(shown)} of {len(found)} unmatched objects: {shown}"
                )
            )
        return self

    def assert_nontrivial_match(self) -> LoadStatus:
        """Raise unless something besides the root was matched."""
        self._restoration.again()
        if self._restoration.live.keys() <= {0}:
            raise AssertionError(self._report("Nothing except the root object matched a checkpointed value."))
        return self

    def expect_partial(self) -> LoadStatus:
        """Say that it is meant to be so that saved values are left over; without it a warning is logged in the end."""
        self._restoration.leftovers.expected = True
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Nothing to do: values are restored at once, or when their variables are made."""

    run_restore_ops = initialize_or_restore

    def _report(self, summary: str) -> str:
        self._restoration.leftovers.expected = True  # the error says more
        saved = self._restoration.unresolved()
        live = [node.path for node in self._restoration.unmatched()]
        near = {name: difflib.get_close_matches(name, live, n=1, cutoff=0.75) for name in saved}
        pairs = [f"{name!r} in the checkpoint, {match[0]!r} in the program" for name, match in near.items() if match]
        return message(
            summary,
            received=f"saved, but without an object in the program: {_listed(saved)}" if saved else None,
            expected=f"a saved value for each of these in the program: {_listed(live)}" if live else None,
            why="perhaps renamed: " + "; ".join(pairs[:3]) if pairs else None,
            fix="give the attributes the names they had, or call expect_partial() to take what is there",
        )


class NoCheckpoint:
    """What `Checkpoint.restore(None)` returns: nothing was restored, and assertions say so."""

    def _refuse(self) -> Any:
        raise AssertionError(
            message(
                "No checkpoint specified (save_path=None); nothing is being restored.",
                received="save_path=None",
                fix="tf.train.latest_checkpoint(directory) is None where there is none: train from the start then",
            )
        )

    assert_consumed = assert_existing_objects_matched = assert_nontrivial_match = run_restore_ops = _refuse

    def expect_partial(self) -> NoCheckpoint:
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Nothing to do: variables have their values from the start."""
