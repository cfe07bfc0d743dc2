"""Every check of every op, driven by the records in ``records_*.py`` beside this file."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import warnings
import weakref
from pathlib import Path
from typing import Any

import every_op  # noqa: F401
import numpy as np
import pytest

import gradtape as tf
import gradtape.ops
from gradtape.core.op import OPS
from gradtape.testing import OpRecord, check_gradients
from gradtape.values import dtypes, nest
from gradtape.values.tensor import Tensor, wrap


def _load() -> list[OpRecord]:
    found = []
    for path in sorted(Path(__file__).parent.glob("records_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found += module.RECORDS
    return found


RECORDS = _load()


def every(condition: Any = lambda record: True, slow: Any = lambda record: False) -> Any:
    """Parametrise a test over the records that meet a condition; for some of them it is one of the slow tests."""
    marks = {True: [pytest.mark.slow], False: []}
    return pytest.mark.parametrize(
        "record", [pytest.param(r, id=r.id, marks=marks[slow(r)]) for r in RECORDS if condition(r)]
    )


# Values as arrays, tensors, and in other dtypes


@functools.cache
def samples(record: OpRecord) -> list[tuple[np.ndarray, ...]]:
    found = [tuple(np.asarray(a) for a in sample) for sample in record.samples(np.random.default_rng(7))]
    assert found, f"{record.id} has no sample"
    return found


def is_floating(array: np.ndarray) -> bool:
    return array.dtype.kind in "fc" or array.dtype == dtypes.bfloat16.numpy


def cast(sample: tuple, dtype: str) -> list[np.ndarray]:
    """Writable copies, floating arrays in another dtype."""
    target = dtypes.as_dtype(dtype).numpy
    return [np.array(a, target if is_floating(a) and a.dtype.kind != "c" else a.dtype) for a in sample]


def double(arrays: list) -> list[np.ndarray]:
    return [a if not is_floating(a) or a.dtype.kind == "c" else a.astype(np.float64) for a in arrays]


def tensors(arrays: Any) -> list[Tensor]:
    return [wrap(np.array(a)) for a in arrays]


def outputs(result: Any) -> list[np.ndarray]:
    return [np.asarray(t.numpy()) for t in nest.flatten(result)]


def expected(record: OpRecord, arrays: list) -> list[np.ndarray]:
    """The reference's answer; without a reference, the op's own in float64."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if record.reference is None:
            return outputs(record.function(*arrays))
        answer = record.reference(*arrays)
    return [np.asarray(a) for a in (answer if isinstance(answer, (tuple, list)) else (answer,))]


def close(received: Any, wanted: Any, rtol: float, what: str = "") -> None:
    """Equal to ``rtol``, relative to each entry and (for what cancels) to the largest entry of the array."""
    received, wanted = np.asarray(received), np.asarray(wanted)
    assert received.shape == wanted.shape, f"{what}: shape {received.shape}, expected {wanted.shape}"
    if not is_floating(received):
        np.testing.assert_array_equal(received, wanted, err_msg=what)
        return
    kind = np.complex128 if received.dtype.kind == "c" else np.float64
    received, wanted = received.astype(kind), np.asarray(wanted).astype(kind)
    finite = wanted[np.isfinite(wanted)]
    atol = rtol * float(np.abs(finite).max(initial=0))
    np.testing.assert_allclose(received, wanted, rtol, atol, err_msg=what)


TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "float16": 8 * 2.0**-10, "bfloat16": 8 * 2.0**-7}
"""Eight units in the last place for the half types; their reference is computed from the rounded input."""


def tolerance(record: OpRecord, dtype: str) -> float:
    return TOLERANCE[dtype] * (record.half_tolerance if "16" in dtype else 1)


def floating_sources(inputs: list[Tensor]) -> list[Tensor]:
    return [t for t in inputs if t.dtype.is_trainable]


def differentiated(record: OpRecord, arrays: list, seed: int = 3) -> tuple[list, list[Tensor]]:
    """The gradients of a random combination of the outputs, and the sources."""
    inputs = tensors(arrays)
    sources = floating_sources(inputs)
    with tf.GradientTape() as tape:
        tape.watch(sources)
        targets = [t for t in nest.flatten(record.function(*inputs)) if t.dtype.is_trainable]
    rng = np.random.default_rng(seed)
    seeds = [wrap(np.asarray(rng.normal(size=t._array.shape)).astype(t._array.dtype)) for t in targets]
    return tape.gradient(targets, sources, output_gradients=seeds, unconnected_gradients="zero"), sources


# Value and dtype

CASES = [(r, dtype) for r in RECORDS for dtype in (r.dtypes if r.floating else ("float64",))]


@pytest.mark.tiny
@pytest.mark.parametrize(("record", "dtype"), [pytest.param(r, d, id=f"{r.id}-{d}") for r, d in CASES])
def test_value_and_dtype(record, dtype):
    for sample in samples(record):
        arrays = cast(sample, dtype)
        untouched = [a.copy() for a in arrays]
        results = outputs(record.function(*arrays))
        wanted = expected(record, double(arrays))
        assert len(results) == len(wanted)
        for i, (received, right) in enumerate(zip(results, wanted)):
            close(received, right, tolerance(record, dtype), f"output {i} of {record.id} in {dtype}")
            if is_floating(received) and record.same_dtype and record.floating:
                assert received.dtype == dtypes.as_dtype(dtype).numpy, f"{record.id}: {dtype} became {received.dtype}"
            if not is_floating(received) and record.reference is not None:
                assert received.dtype == right.dtype, f"{record.id} gave {received.dtype}, the reference {right.dtype}"
        for array, before in zip(arrays, untouched):
            np.testing.assert_array_equal(array, before, err_msg=f"{record.id} changed its argument")


@every()
def test_result_is_independent_of_the_users_arrays(record):
    arrays = cast(samples(record)[0], "float64")
    result = nest.flatten(record.function(*arrays))
    for tensor, array in itertools.product(result, arrays):
        assert not np.shares_memory(tensor._array, array)


@every(lambda r: r.complex)
def test_complex_value(record):
    for arrays in complex_samples(record):
        results, wanted = outputs(record.function(*arrays)), expected(record, arrays)
        for received, right in zip(results, wanted):
            close(received, right, 1e-11, record.id)
            assert received.dtype == right.dtype
        single = outputs(record.function(*[a.astype(np.complex64) if a.dtype.kind == "c" else a for a in arrays]))
        for received, right in zip(single, wanted):
            close(received, right, 2e-5, record.id)
            assert received.dtype.itemsize * 2 == right.dtype.itemsize


def complex_samples(record: OpRecord) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(11)
    return [[a + 0.5j * rng.normal(size=a.shape) if is_floating(a) else a for a in sample] for sample in samples(record)]


# Gradients

DIFFERENTIABLE = [r for r in RECORDS if r.differentiable]


NOT_IN_MILLISECONDS = "attention attention_gradient conv conv_filter conv_input convolution ctc_loss expm logm sqrtm".split()
"""Ops that `make check` does not differentiate numerically, only the test after the next."""


@pytest.mark.tiny
@every(lambda r: r.differentiable and r.id.split("[")[0] not in NOT_IN_MILLISECONDS)
def test_gradients_at_one_point_agree_with_numerical_derivatives(record):
    check_gradients(record.function, samples(record)[0], min(record.order, 1))


@every(lambda r: r.differentiable)
def test_gradients_agree_with_numerical_derivatives(record):
    for sample in samples(record):
        check_gradients(record.function, sample, record.order)


@every(lambda r: r.differentiable and r.complex)
def test_complex_gradients_agree_with_numerical_derivatives(record):
    for arrays in complex_samples(record):
        check_gradients(record.function, arrays, record.order)


HALF = [(r, d) for r in DIFFERENTIABLE if r.floating for d in r.dtypes if d != "float64"]


@pytest.mark.parametrize(("record", "dtype"), [pytest.param(r, d, id=f"{r.id}-{d}") for r, d in HALF])
def test_gradients_have_the_dtype_of_their_source(record, dtype):
    for sample in samples(record):
        arrays = cast(sample, dtype)
        received, sources = differentiated(record, arrays)
        wanted, _ = differentiated(record, double(arrays))
        for g, right, source in zip(received, wanted, sources):
            g = tf.convert_to_tensor(g)
            assert g.dtype is source.dtype
            # Rules round intermediate results too, and the cotangent was rounded: four times the value's tolerance.
            close(g.numpy(), tf.convert_to_tensor(right).numpy(), 4 * tolerance(record, dtype), f"{record.id} in {dtype}")


@pytest.mark.tiny
@every(lambda r: not r.differentiable)
def test_no_gradient_flows_through_what_is_not_differentiable(record):
    inputs = tensors(samples(record)[0])
    sources = floating_sources(inputs)
    if sources:
        with tf.GradientTape() as tape:
            tape.watch(sources)
            result = nest.flatten(record.function(*inputs))
        assert tape.gradient([t for t in result if t.dtype.is_floating], sources) == [None] * len(sources)


@every(lambda r: r.differentiable)
def test_a_persistent_tape_answers_twice_the_same(record):
    inputs = tensors(samples(record)[0])
    sources = floating_sources(inputs)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(sources)
        targets = [t for t in nest.flatten(record.function(*inputs)) if t.dtype.is_trainable]
    before = [t.numpy() for t in inputs]
    first, second = (tape.gradient(targets, sources, unconnected_gradients="zero") for _ in range(2))
    one_shot = differentiated_by_ones(record, inputs, sources)
    for a, b, c in zip(first, second, one_shot):
        a, b, c = (tf.convert_to_tensor(g).numpy() for g in (a, b, c))
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
    for tensor, old in zip(inputs, before):
        np.testing.assert_array_equal(tensor.numpy(), old)


def differentiated_by_ones(record: OpRecord, inputs: list, sources: list) -> list:
    with tf.GradientTape() as tape:
        tape.watch(sources)
        targets = [t for t in nest.flatten(record.function(*inputs)) if t.dtype.is_trainable]
    return tape.gradient(targets, sources, unconnected_gradients="zero")


# Jacobians: batched = looped = stacked gradients, at first and second order


@every(lambda r: r.differentiable and r.batched)
@pytest.mark.parametrize("numbers", ["real", "complex"])
def test_batched_jacobian_equals_looped(record, numbers):
    if numbers == "complex" and not record.complex:
        pytest.skip("real only")
    arrays = samples(record)[0] if numbers == "real" else complex_samples(record)[0]
    inputs = tensors(arrays)
    sources = floating_sources(inputs)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(sources)
        targets = [t for t in nest.flatten(record.function(*inputs)) if t.dtype.is_trainable]
    for target in targets:
        batched = tape.jacobian(target, sources, unconnected_gradients="zero")
        looped = tape.jacobian(target, sources, unconnected_gradients="zero", experimental_use_pfor=False)
        for a, b, source in zip(batched, looped, sources):
            assert a.shape == target.shape + source.shape
            assert a.dtype is b.dtype is source.dtype
            close(a.numpy(), b.numpy(), 1e-12, record.id)
            stacked = stacked_gradients(tape, target, source)
            close(a.numpy(), stacked.reshape(a.shape), 1e-12, record.id)


def stacked_gradients(tape: Any, target: Tensor, source: Tensor) -> np.ndarray:
    shape, dtype = target._array.shape, target._array.dtype
    rows = [np.zeros((0, *source.shape))]
    for unit in np.eye(int(np.prod(shape)), dtype=dtype):
        g = tape.gradient(target, source, output_gradients=wrap(unit.reshape(shape)), unconnected_gradients="zero")
        rows.append(np.asarray(tf.convert_to_tensor(g).numpy())[None])
    return np.concatenate(rows)


@every(lambda r: r.differentiable and r.batched and r.order >= 2)
def test_batched_jacobian_of_the_gradient_equals_looped(record):
    inputs = tensors(samples(record)[0])
    sources = floating_sources(inputs)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(sources)
        gradients, weights = _weighted_gradients(record, inputs, sources)
    for g in gradients:
        batched = outer.jacobian(g, [*sources, *weights], unconnected_gradients="zero")
        looped = outer.jacobian(g, [*sources, *weights], unconnected_gradients="zero", experimental_use_pfor=False)
        for a, b in zip(batched, looped):
            close(a.numpy(), b.numpy(), 1e-12, record.id)


def _weighted_gradients(record: OpRecord, inputs: list, sources: list) -> tuple[list, list]:
    rng = np.random.default_rng(5)
    with tf.GradientTape() as tape:
        tape.watch(sources)
        targets = [t for t in nest.flatten(record.function(*inputs)) if t.dtype.is_trainable]
    weights = [wrap(np.asarray(rng.normal(size=t._array.shape)).astype(t._array.dtype)) for t in targets]
    gradients = tape.gradient(targets, sources, output_gradients=weights, unconnected_gradients="zero")
    return [tf.convert_to_tensor(g) for g in gradients], weights


@every(lambda r: r.differentiable and r.batched and r.order >= 2)
def test_a_recorded_batched_jacobian_is_differentiable(record):
    results = []
    for batched in (True, False):
        inputs = tensors(samples(record)[0])
        sources = floating_sources(inputs)
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(sources)
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(sources)
                target = next(t for t in nest.flatten(record.function(*inputs)) if t.dtype.is_trainable)
            jacobians = tape.jacobian(target, sources, unconnected_gradients="zero", experimental_use_pfor=batched)
        results.append(outer.gradient(jacobians, sources, unconnected_gradients="zero"))
    for a, b in zip(*results):
        close(tf.convert_to_tensor(a).numpy(), tf.convert_to_tensor(b).numpy(), 1e-11, record.id)


# Shapes at the edge: nothing in it, broadcasting


@functools.cache
def empties(record: OpRecord) -> list[list[np.ndarray]]:
    if record.empties is not None:
        return [[np.asarray(a) for a in sample] for sample in record.empties()]
    arrays = [a[:0] if a.ndim else a for a in samples(record)[0]]
    if record.reference is None or not any(a.size == 0 for a in arrays):
        return []
    try:
        with np.errstate(all="ignore"):
            expected(record, arrays)
    except Exception:  # the reference does not take them; a record may name its own
        return []
    return [arrays]


@pytest.mark.tiny
@every(empties)
def test_empty_input(record):
    for arrays in empties(record):
        results = outputs(record.function(*arrays))
        if record.reference is not None:
            for received, right in zip(results, expected(record, arrays)):
                close(received, right, 1e-12, record.id)
        if record.differentiable:
            for g, source in zip(*differentiated(record, arrays)):
                assert tf.convert_to_tensor(g).shape == source.shape
                assert g.dtype is source.dtype


PAIRS = [((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (1, 3)), ((), (2, 2)), ((2, 2), ()), ((1,), (2, 2)), ((1, 2, 1), (3, 1, 2)),
         ((0, 2), (1, 2)), ((1, 1), (0, 2))]  # fmt: skip


@every(lambda r: r.broadcasting)
@pytest.mark.parametrize("shapes", PAIRS, ids=str)
def test_broadcasting(record, shapes):
    x, y = (np.resize(a, shape) for a, shape in zip(samples(record)[0], shapes))
    for received, right in zip(outputs(record.function(x, y)), expected(record, [x, y])):
        close(received, right, 1e-12, record.id)
    if record.differentiable:
        check_gradients(record.function, [x, y], record.order)
        inputs = tensors([x, y])
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(inputs)
            target = record.function(*inputs)
        batched, looped = (tape.jacobian(target, inputs, experimental_use_pfor=p) for p in (True, bool(not target._array.size)))
        for a, b in zip(batched, looped):
            close(a.numpy(), b.numpy(), 1e-12, record.id)


@pytest.mark.tiny
@every(lambda r: r.broadcasting)
def test_shapes_that_do_not_broadcast_are_refused(record):
    x, y = (np.resize(a, shape) for a, shape in zip(samples(record)[0], [(2, 3), (4,)]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Incompatible shapes: \[2,3\] vs. \[4\]"):
        record.function(x, y)


# Values at the edge


def _extremes(dtype: Any) -> np.ndarray:
    limits = np.finfo(dtype)
    values = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, limits.smallest_subnormal, -limits.smallest_subnormal,
              limits.tiny, limits.max, limits.min]  # fmt: skip
    return np.array(values, dtype)


@pytest.mark.tiny
@every(lambda r: r.extremes)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_extremes(record, dtype):
    values = _extremes(dtype)
    count = sum(is_floating(a) for a in samples(record)[0])
    arrays = [values] if count == 1 else [a.reshape(-1).copy() for a in np.meshgrid(values, values)]
    results = outputs(record.function(*arrays))
    for received, right in zip(results, expected(record, arrays)):
        rtol = 1e-12 if dtype is np.float64 else 1e-5
        tiny = float(np.finfo(dtype).tiny)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(received, right, rtol, tiny if is_floating(received) else 0, err_msg=record.id)
        zero = np.asarray(right == 0) & (received == 0)
        if is_floating(received) and right.dtype.kind == "f":
            received, right = np.signbit(received[zero]), np.signbit(right[zero])
            np.testing.assert_array_equal(received, right, err_msg=f"{record.id}: sign of 0")
    if record.differentiable:
        differentiated(record, arrays)  # without a warning


@pytest.mark.tiny
@every(lambda r: r.bad)
def test_bad_input_is_refused(record):
    for arguments, error, fragment in record.bad:
        with pytest.raises(error) as caught:
            record.function(*arguments())
        assert fragment in str(caught.value), f"{record.id}: {caught.value}"


# Memory


@pytest.mark.tiny
@every(lambda r: r.differentiable and r.name in OPS)
def test_a_record_keeps_alive_only_what_its_rules_read(record):
    inputs = tensors(samples(record)[0])
    with tf.GradientTape() as tape:
        tape.watch(floating_sources(inputs))
        out = record.function(*inputs)
    kept = [r for r in tape.records.values() if r[0] is not None]
    op = OPS[record.name].op
    if len(kept) != 1 or kept[0][1] is not op:
        pytest.skip("calls other ops too")
    keeps = op.keeps
    if op.paired and len(inputs) < len(op.inputs):  # the other operand is a number, so only the rule of the first can run
        keeps = [name for name, kept in zip(("out", *op.inputs), op.alone[0]) if kept]
    if op.variadic:
        alive = dict.fromkeys(range(len(inputs)), op.inputs[0] in keeps)
    else:
        alive = {i: name in keeps for i, name in enumerate(op.inputs)}
    holders = {i: weakref.ref(t) for i, t in enumerate(inputs)}
    held_out = weakref.ref(nest.flatten(out)[0])
    del inputs, out
    assert {i: ref() is not None for i, ref in holders.items()} == {i: alive[i] for i in holders}
    assert (held_out() is not None) == ("out" in keeps)


# Every op has a record


def _own_ops() -> dict[str, Any]:
    """The ops of the library, without those that other tests define."""
    return {name: call.op for name, call in OPS.items() if getattr(call.op.kernel, "__module__", "").startswith("gradtape.")}


@pytest.mark.tiny
def test_every_op_has_a_record():
    covered = {name for r in RECORDS for name in (r.name, *r.also)}
    missing = sorted(set(_own_ops()) - covered)
    assert not missing, f"ops without a record in tests/ops/records_*.py: {missing}"


@pytest.mark.tiny
def test_every_op_has_rules_or_is_declared_nondifferentiable():
    undeclared = [name for name, op in _own_ops().items() if op.differentiable and op.rules is None]
    assert not undeclared, f"neither .vjp(…) nor .nondifferentiable(): {undeclared}"


@pytest.mark.tiny
def test_records_say_which_ops_are_differentiable():
    own = _own_ops()
    wrong = [r.id for r in RECORDS if r.name in own and r.differentiable and not own[r.name].differentiable]
    assert not wrong, f"records of non-differentiable ops must say differentiable=False: {wrong}"
    for name, op in own.items():
        records = [r for r in RECORDS if r.name == name]
        if op.differentiable and records:
            assert any(r.differentiable for r in records), f"{name} is differentiable, but no record checks its gradient"


@pytest.mark.tiny
def test_record_names_are_unique():
    ids = [r.id for r in RECORDS]
    assert sorted(set(ids)) == sorted(ids), sorted(i for i in ids if ids.count(i) > 1)


# JAX computes what NumPy computes

JAX = importlib.util.find_spec("jax") is not None and importlib.util.find_spec("gradtape.xp.jax") is not None


@pytest.mark.skipif(not JAX, reason="needs jax and gradtape.xp.jax")
@every(lambda r: r.jax, slow=lambda r: r not in RECORDS[::16])  # op by op; `test_tape_inside` has them all, compiled
def test_jax_equals_numpy(record):
    import jax

    arrays = samples(record)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # jax's own deprecations
        with jax.enable_x64(True):
            inputs = [wrap(jax.numpy.asarray(a)) for a in arrays]
        results = outputs(record.function(*inputs))
        wanted = outputs(record.function(*arrays))
        for received, right in zip(results, wanted):
            close(received, right, 1e-10, record.id)
            assert received.dtype == right.dtype
        if record.differentiable:
            received, _ = jax_differentiated(record, inputs)
            right, _ = differentiated(record, list(arrays))
            for a, b in zip(received, right):
                close(tf.convert_to_tensor(a).numpy(), tf.convert_to_tensor(b).numpy(), 1e-9, record.id)


def jax_differentiated(record: OpRecord, inputs: list, seed: int = 3) -> tuple[list, list]:
    import jax

    sources = floating_sources(inputs)
    with tf.GradientTape() as tape:
        tape.watch(sources)
        targets = [t for t in nest.flatten(record.function(*inputs)) if t.dtype.is_trainable]
    rng = np.random.default_rng(seed)
    with jax.enable_x64(True):
        seeds = [wrap(jax.numpy.asarray(np.asarray(rng.normal(size=t._array.shape)).astype(t._array.dtype))) for t in targets]
    return tape.gradient(targets, sources, output_gradients=seeds, unconnected_gradients="zero"), sources
