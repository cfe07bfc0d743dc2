"""Random pipelines against a model in plain Python; rows against elements; saved positions; shuffling."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle as cycled
from itertools import pairwise, takewhile
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradtape as tf
from gradtape.values.spec import TensorSpec

Step = tuple[str, Callable[[Any], Any], Callable[[list], list]]
Dataset = tf.data.Dataset
NUMBER = TensorSpec([], tf.int64)


def from_rows(numbers: list[int]) -> Any:
    return Dataset.from_tensor_slices(np.array(numbers, np.int64))


def from_elements(numbers: list[int]) -> Any:
    return Dataset.from_generator(lambda: iter(numbers), output_signature=NUMBER)


def windows(numbers: list, size: int, shift: int) -> list:
    return [number for start in range(0, len(numbers), shift) for number in numbers[start : start + size]]


def interleaved(numbers: list, cycle: int, block: int) -> list:
    """Each number n becomes n % 4 copies of it; ``cycle`` of them are open at a time."""
    waiting = [[n] * (n % 4) for n in numbers]
    slots: list[list | None] = [None] * cycle
    found: list = []
    for turn in cycled(range(cycle)):
        if not waiting and not any(slot is not None for slot in slots):
            return found
        given_out = 0
        while given_out < block:
            if slots[turn] is None:
                if not waiting:
                    break
                slots[turn] = waiting.pop(0)
            if not slots[turn]:
                slots[turn] = None
                break
            found.append(slots[turn].pop())
            given_out += 1
    return found


def plus(dataset: Any, n: int, calls: int | None = None) -> Any:
    return dataset.map(lambda a: a + n, num_parallel_calls=calls)


def copies(dataset: Any, cycle: int, block: int, calls: int | None) -> Any:
    return dataset.interleave(lambda a: Dataset.from_tensors(a).repeat(a % 4), cycle, block, calls)


FIXED: list[Step] = [
    ("shuffle 1", lambda d: d.shuffle(1), lambda x: x),
    ("cache", lambda d: d.cache(), lambda x: x),
    ("unique", lambda d: d.unique(), lambda x: list(dict.fromkeys(x))),
    ("enumerate", lambda d: d.enumerate().map(lambda k, a: k + a), lambda x: [k + a for k, a in enumerate(x)]),
    ("zip", lambda d: Dataset.zip((d, d.skip(1))).map(lambda a, b: a - b), lambda x: [a - b for a, b in pairwise(x)]),
    ("scan", lambda d: d.scan(np.int64(0), lambda s, a: (s + a, s)), lambda x: [sum(x[:k]) for k in range(len(x))]),
    ("concatenate", lambda d: d.concatenate(Dataset.range(2)), lambda x: [*x, 0, 1]),
    ("twice", lambda d: d.flat_map(lambda a: Dataset.from_tensors(a).repeat(2)), lambda x: [b for a in x for b in (a, a)]),
]


def counted(n: int) -> list[Step]:
    """Steps with a number n ≥ 1."""
    return [
        (f"take {n}", lambda d: d.take(n - 1), lambda x: x[: n - 1]),
        (f"skip {n}", lambda d: d.skip(n - 1), lambda x: x[n - 1 :]),
        (f"repeat {n}", lambda d: d.repeat(n // 2), lambda x: x * (n // 2)),
        (f"repeat for ever, take {n}", lambda d: d.repeat().take(n), lambda x: (x * n)[:n]),
        (f"shard {n}", lambda d: d.shard(n, n - 1), lambda x: x[n - 1 :: n]),
        (f"plus {n}", lambda d: plus(d, n), lambda x: [a + n for a in x]),
        (f"plus {n} in threads", lambda d: plus(d, n, calls=n), lambda x: [a + n for a in x]),
        (f"filter {n}", lambda d: d.filter(lambda a: a % n == 0), lambda x: [a for a in x if a % n == 0]),
        (f"while {n}", lambda d: d.take_while(lambda a: a < 5 * n), lambda x: list(takewhile(lambda a: a < 5 * n, x))),
        (f"batch {n}", lambda d: d.batch(n).unbatch(), lambda x: x),
        (f"batch {n} and drop", lambda d: d.batch(n, True).unbatch(), lambda x: x[: len(x) // n * n]),
        (f"rebatch {n}", lambda d: d.batch(3).rebatch(n).unbatch(), lambda x: x),
        (f"prefetch {n}", lambda d: d.prefetch(n), lambda x: x),
    ]


def paired(n: int, m: int) -> list[Step]:
    """Steps with two numbers."""
    return [
        (f"window {n} {m}", lambda d: d.window(n, m).flat_map(lambda w: w.batch(3)).unbatch(), lambda x: windows(x, n, m)),
        (f"interleave {n} {m}", lambda d: copies(d, n, m, None), lambda x: interleaved(x, n, m)),
        (f"interleave {n} {m} in threads", lambda d: copies(d, n, m, 2), lambda x: interleaved(x, n, m)),
    ]


def steps() -> st.SearchStrategy[Step]:
    number = st.integers(1, 7)
    with_one = number.flatmap(lambda n: st.sampled_from(counted(n)))
    with_two = st.tuples(number, number).flatmap(lambda pair: st.sampled_from(paired(*pair)))
    return st.sampled_from(FIXED) | with_one | with_one | with_two


numbers = st.lists(st.integers(0, 30), max_size=9)
sources = st.sampled_from([from_rows, from_elements])
pipelines = st.lists(steps(), max_size=4)


def values(dataset: Any) -> list[int]:
    return [int(element) for element in dataset]


@given(numbers, sources, pipelines)
def test_as_the_model(start, source, pipeline):
    dataset, expected = source(start), start
    for _, transform, model in pipeline:
        dataset, expected = transform(dataset), model(expected)
    assert values(dataset) == expected
    assert values(dataset) == expected  # a second pass
    count = int(dataset.cardinality())
    endless = any(name.startswith("repeat for ever") for name, *_ in pipeline)
    if not endless:  # which counts as endless even if, unknown to it, there is nothing to repeat; as in TensorFlow
        assert count in (tf.data.UNKNOWN_CARDINALITY, len(expected))
    if expected:
        assert dataset.element_spec == NUMBER


@given(numbers, sources, pipelines, st.integers(1, 9), st.booleans(), st.integers(0, 12))
def test_a_saved_position_continues(start, source, pipeline, size, twice, position):
    """In a new iterator of a dataset built anew, as in another process; with and without seeds."""
    for seed in (None, 3):
        def build(seed=seed):
            dataset = source(start).shuffle(size, seed=seed)
            for _, transform, _ in pipeline:
                dataset = transform(dataset)
            return dataset.repeat(2) if twice else dataset

        iterator = iter(build())
        for _ in zip(range(position), iterator):
            pass
        state = iterator._state()
        rest = values(iterator)
        other = iter(build())
        if not any(name == "cache" for name, *_ in pipeline):  # what a cache holds is no part of the position
            next(other, None)
        other._restore(state)
        assert other._state()["count"] == state["count"]
        assert values(other) == rest


@given(st.integers(0, 3000), st.integers(1, 3000), st.integers(0, 5), st.booleans())
def test_shuffling_rows_is_shuffling_elements(count, size, seed, reshuffle):
    def shuffled(dataset):
        return values(dataset.shuffle(size, seed=seed, reshuffle_each_iteration=reshuffle).repeat(2).batch(7).unbatch())

    rows = shuffled(from_rows(list(range(count))))
    assert rows == shuffled(from_elements(list(range(count))))
    first, second = rows[:count], rows[count:]
    assert sorted(first) == sorted(second) == list(range(count))
    assert all(number < position + size for position, number in enumerate(first))  # nothing comes before it is in the buffer
    assert reshuffle or first == second


def test_a_full_buffer_gives_all_orders_alike():
    counts: dict[tuple, int] = {}
    for batch in Dataset.range(4).shuffle(4, seed=1).batch(4).repeat(2400):
        counts[tuple(batch.numpy().tolist())] = counts.get(tuple(batch.numpy().tolist()), 0) + 1
    assert len(counts) == 24
    assert all(60 < n < 140 for n in counts.values())  # 100 ± 4 standard deviations


def test_a_small_buffer_draws_uniformly():
    """The first element of a buffer of four is any of the first four, each as often."""
    firsts = [int(next(iter(Dataset.range(50).shuffle(4, seed=s)))) for s in range(400)]
    assert set(firsts) == set(range(4))
    assert all(60 < firsts.count(k) < 140 for k in range(4))


class TestSeeds:
    @pytest.fixture(autouse=True)
    def _unseeded(self):
        yield
        tf.random.set_seed(None)

    def order(self, seed=None, **options):
        dataset = Dataset.range(20).shuffle(20, seed=seed, **options)
        return values(dataset), values(dataset)

    def test_an_op_seed_gives_the_same_passes_in_every_program(self):
        assert self.order(5) == self.order(5)
        assert self.order(5) != self.order(6)

    def test_passes_differ_unless_told_otherwise(self):
        first, second = self.order(5)
        assert first != second
        first, second = self.order(5, reshuffle_each_iteration=False)
        assert first == second
        first, second = self.order(reshuffle_each_iteration=False)
        assert first == second

    def test_the_global_seed_makes_all_of_them_reproducible(self):
        tf.random.set_seed(1)
        before = self.order(), self.order(), self.order(5)
        tf.random.set_seed(1)
        assert (self.order(), self.order(), self.order(5)) == before
        assert before[0] != before[1]
        tf.random.set_seed(2)
        assert self.order(5) != before[2]

    def test_without_seeds_nothing_repeats(self):
        assert self.order() != self.order()
