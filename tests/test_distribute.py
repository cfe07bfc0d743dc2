"""Strategies with one replica: the contexts, the reductions, and what is refused."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

import gradtape as tf
from gradtape import distribute
from gradtape.scope import OutOfScopeError

pytestmark = pytest.mark.tiny

STRATEGIES = {
    "mirrored": distribute.MirroredStrategy,
    "one device": lambda: distribute.OneDeviceStrategy("/cpu:0"),
    "central storage": distribute.experimental.CentralStorageStrategy,
    "multi worker": distribute.MultiWorkerMirroredStrategy,
}


@pytest.fixture(params=STRATEGIES)
def strategy(request):
    return STRATEGIES[request.param]()


def where() -> tuple:
    replica = distribute.get_replica_context()
    return distribute.has_strategy(), distribute.in_cross_replica_context(), replica is not None


def test_a_training_step_is_the_plain_one(strategy):
    """The usual custom loop, against the same without a strategy."""
    data = np.linspace(-1, 1, 8, dtype=np.float32)

    def train(strategy):
        with strategy.scope():
            w = tf.Variable(0.5)
            optimizer = tf.optimizers.SGD(0.1)

        def step(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum((w * x - 2 * x) ** 2) / len(data)
            optimizer.apply_gradients([(tape.gradient(loss, w), w)])
            return loss

        total = strategy.reduce(distribute.ReduceOp.SUM, strategy.run(step, args=(tf.constant(data),)), axis=None)
        return float(total), float(w.numpy())

    assert train(strategy) == train(distribute.get_strategy())


def test_who_speaks_for_whom(strategy):
    assert where() == (False, False, True)
    with strategy.scope():
        assert distribute.get_strategy() is strategy
        assert where() == (True, True, False)
        assert strategy.run(where) == (True, False, True)
        merged = strategy.run(lambda: distribute.get_replica_context().merge_call(lambda s, n: (s, where(), n), args=(3,)))
        assert merged == (strategy, (True, True, False), 3)
    assert where() == (False, False, True)


def test_an_error_inside_leaves_no_context_behind(strategy):
    with pytest.raises(ZeroDivisionError), strategy.scope():
        strategy.run(lambda: 1 / 0)
    assert where() == (False, False, True)


def test_contexts_are_per_thread(strategy):
    seen = []
    with strategy.scope():
        worker = threading.Thread(target=lambda: seen.append(where()))
        worker.start()
        worker.join()
    assert seen == [(False, False, True)]


def test_reductions_of_one_replica(strategy):
    x = tf.constant([[1.0, 2.0], [3.0, 6.0]])
    np.testing.assert_array_equal(strategy.reduce("sum", x, axis=0), [4.0, 8.0])
    np.testing.assert_array_equal(strategy.reduce("MEAN", {"a": x}, axis=(0, 1))["a"], 3.0)
    assert strategy.reduce("SUM", x, axis=None) is x
    assert strategy.experimental_local_results(x) == (x,)
    assert strategy.num_replicas_in_sync == 1
    context = distribute.get_replica_context()
    np.testing.assert_array_equal(context.all_reduce("SUM", [x])[0], x)
    np.testing.assert_array_equal(context.all_gather(x, 0), x)
    with pytest.raises(ValueError, match="'FOO' is not a valid ReduceOp"):
        strategy.reduce("foo", x, axis=None)


def test_datasets_go_through(strategy):
    batches = [1, 2, 3]
    assert strategy.experimental_distribute_dataset(batches) is batches
    made = strategy.distribute_datasets_from_function(lambda context: context.get_per_replica_batch_size(8))
    assert made == 8
    assert strategy.experimental_distribute_values_from_function(lambda context: context.replica_id_in_sync_group) == 0


def test_library_code_finds_what_it_asks_for(strategy):
    v = tf.Variable(1.0)
    extended = strategy.extended
    assert extended.worker_devices == ("/device:CPU:0",)
    extended.update(v, lambda variable, x: variable.assign_add(x), args=(2.0,))
    assert float(v.numpy()) == 3.0
    assert extended.batch_reduce_to("SUM", [(1.0, None), (2.0, None)]) == [1.0, 2.0]
    assert extended.call_for_each_replica(lambda n: n + 1, (1,)) == 2


def test_strategies_do_not_mix(strategy):
    with strategy.scope():
        with strategy.scope():
            pass
        with pytest.raises(RuntimeError, match="Mixing different"):
            distribute.MirroredStrategy().scope()
    for inside in (lambda: strategy.run(lambda: 1), lambda: strategy.reduce("SUM", 1.0, None), strategy.scope):
        with pytest.raises(RuntimeError, match="cross-replica context"):
            strategy.run(inside)


def test_a_strategy_without_a_scope(strategy):
    distribute.experimental_set_strategy(strategy)
    try:
        assert distribute.get_strategy() is strategy
    finally:
        distribute.experimental_set_strategy(None)
    assert not distribute.has_strategy()


@pytest.mark.parametrize("devices", [["/cpu:0", "/cpu:1"], ["/gpu:7"], ["/cpu:3"]], ids=str)
def test_more_than_there_is(devices):
    with pytest.raises(ValueError, match="MirroredStrategy runs one replica"):
        distribute.MirroredStrategy(devices)


def test_several_workers(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {"worker": ["a:1", "b:2"]}, "task": {"index": 0}}))
    with pytest.raises(ValueError, match="TF_CONFIG with 2 workers"):
        distribute.MultiWorkerMirroredStrategy()


def test_communication_choices_are_accepted():
    distribute.MirroredStrategy(cross_device_ops=distribute.HierarchicalCopyAllReduce(num_packs=1))
    distribute.MirroredStrategy(cross_device_ops=distribute.NcclAllReduce())
    distribute.ReductionToOneDevice()
    nccl = distribute.experimental.CollectiveCommunication.NCCL
    distribute.experimental.MultiWorkerMirroredStrategy(communication=nccl)
    assert distribute.experimental.CommunicationOptions(implementation=nccl).implementation is nccl


def test_what_is_out_of_scope_here():
    with pytest.raises(OutOfScopeError, match=r"tf\.distribute\.TPUStrategy is out of scope"):
        distribute.TPUStrategy  # noqa: B018
    with pytest.raises(OutOfScopeError, match="one process"):
        distribute.ParameterServerStrategy  # noqa: B018
