"""Several threads: no update is lost, every read is whole, nothing stands still."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest

import gradtape as tf

N = 100_000


def run(*workers):
    """Each in a thread of its own; what any of them raised is raised here."""
    errors = []

    def guarded(work):
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread stands still"
    if errors:
        raise errors[0]


def repeat(times, action):
    def work():
        for _ in range(times):
            action()

    return work


def whole(array):
    """Whether all elements are equal: the value of before or after an update, not a mixture."""
    return bool((array == array.flat[0]).all())


ROWS = tf.IndexedSlices(tf.ones([N // 2]), tf.range(0, N, 2))
PLACES = tf.range(N)[:, None]

UPDATES = {
    "assign_add": lambda v: v.assign_add(tf.ones([N])),
    "assign_sub": lambda v: v.assign_sub(-tf.ones([N])),
    "scatter_add": lambda v: v.scatter_add(tf.IndexedSlices(tf.ones([N]), tf.range(N))),
    "scatter_sub": lambda v: v.scatter_sub(tf.IndexedSlices(-tf.ones([N]), tf.range(N))),
    "scatter_nd_add": lambda v: v.scatter_nd_add(PLACES, tf.ones([N])),
    "scatter_nd_sub": lambda v: v.scatter_nd_sub(PLACES, -tf.ones([N])),
}


@pytest.mark.parametrize("name", UPDATES)
def test_no_update_is_lost(name):
    v = tf.Variable(tf.zeros([N]))
    times = 100 if name.startswith("assign") else 20
    run(*[repeat(times, lambda: UPDATES[name](v))] * 4)
    np.testing.assert_array_equal(v.numpy(), np.full(N, 4.0 * times, np.float32))


def test_updates_of_many_kinds_do_not_lose_one_another():
    v = tf.Variable(tf.zeros([1000]))
    optimizer = tf.optimizers.SGD(1.0)
    step = tf.function(lambda: v.assign_add(tf.ones([1000])))
    run(
        repeat(100, lambda: v.assign_add(tf.ones([1000]))),
        repeat(100, lambda: v.scatter_add(tf.IndexedSlices(tf.ones([1000]), tf.range(1000)))),
        repeat(100, lambda: optimizer.apply_gradients([(-tf.ones([1000]), v)])),
        repeat(100, step),
    )
    np.testing.assert_array_equal(v.numpy(), np.full(1000, 400.0, np.float32))


def test_functions_under_tapes_lose_no_update_of_one_another():
    v, w = tf.Variable(0.0), tf.Variable(1.0)

    def differentiated():
        @tf.function
        def f(x):
            v.assign_add(1.0)
            return w * x

        def work():
            for _ in range(50):
                with tf.GradientTape() as tape:
                    y = f(tf.constant(2.0))
                assert float(tape.gradient(y, w)) == 2.0

        return work

    run(*[differentiated() for _ in range(4)])
    assert float(v) == 200.0


@pytest.mark.parametrize("name", ["SGD", "RMSprop", "Adam", "Adagrad", "Adadelta", "Adamax", "Nadam", "Ftrl", "Lion", "AdamW"])
def test_every_optimizer_beside_another_thread_does_what_it_does_alone(name):
    def trained():
        variables = [tf.Variable(2.0), tf.Variable([1.0, -1.0]), tf.Variable(tf.ones([2, 3]))]
        optimizer = getattr(tf.optimizers, name)(0.1)
        for i in range(4):
            optimizer.apply_gradients([(tf.ones_like(v) * (1.0 + i), v) for v in variables])
        return [w.numpy() for w in (*variables, *optimizer.variables)]

    expected, found = trained(), []
    run(lambda: found.append(trained()), repeat(200, lambda: tf.Variable(0.0).assign_add(1.0)))
    for a, b in zip(expected, found[0], strict=True):
        np.testing.assert_array_equal(a, b)


def test_threads_that_begin_with_one_new_optimizer_build_it_once():
    for _ in range(20):
        variables = [tf.Variable(tf.zeros([10])) for _ in range(3)]
        optimizer = tf.optimizers.SGD(1.0, momentum=0.5)
        step = lambda: optimizer.apply_gradients([(tf.ones([10]), v) for v in variables])  # noqa: B023
        run(*[step] * 4)
        assert len(optimizer.variables) == 5
        assert int(optimizer.iterations) == 4


def test_tapes_come_and_go_beside_updates():
    v = tf.Variable(0.0)

    def taped():
        with tf.GradientTape():
            pass

    run(repeat(3000, taped), repeat(3000, taped), repeat(3000, lambda: v.assign_add(1.0)), repeat(3000, v.numpy))
    assert float(v) == 3000


def test_checkpoints_written_to_one_place_by_several_threads(tmp_path):
    v = tf.Variable(tf.ones([100]))
    path = str(tmp_path / "a")
    run(*[repeat(5, lambda: tf.train.Checkpoint(v=v).write(path))] * 3)
    v.assign(tf.zeros([100]))
    tf.train.Checkpoint(v=v).read(path).assert_consumed()
    assert v.numpy().tolist() == [1.0] * 100


RULES = {
    "SGD": (lambda: tf.optimizers.SGD(0.5), 0.5),
    "large SGD": (lambda: tf.optimizers.SGD(0.5), 0.5),
    "Adagrad": (lambda: tf.optimizers.Adagrad(0.5), None),
    "Adam": (lambda: tf.optimizers.Adam(0.5), None),
    "AdamW": (lambda: tf.optimizers.AdamW(0.5), None),
    "momentum": (lambda: tf.optimizers.SGD(0.5, momentum=0.9, weight_decay=0.1), None),
}


@pytest.mark.parametrize("name", RULES)
def test_reads_beside_an_optimizer_are_whole(name):
    make, rate = RULES[name]
    size = 400_000 if name == "large SGD" else 50_000
    v, optimizers = tf.Variable(tf.zeros([size])), [make(), make()]
    g, done, torn, kept = tf.ones([size]), threading.Event(), [], []

    def read():
        while not done.is_set():
            tensor = tf.identity(v)
            kept.append((tensor, float(tensor[0])))
            torn.extend(t for t in (v.numpy(), np.asarray(tensor), np.asarray(v + 0.0)) if not whole(t))
            del kept[:-3]

    reader = threading.Thread(target=read)
    reader.start()
    try:
        run(*(repeat(30, lambda opt=opt: opt.apply_gradients([(g, v)])) for opt in optimizers))
    finally:
        done.set()
        reader.join()
    assert not torn
    assert all(float(t[0]) == value and whole(t.numpy()) for t, value in kept)
    if rate is not None:
        assert float(v[0]) == -60 * rate


def test_a_rule_of_the_user_s_loses_nothing_and_holds_no_lock():
    class Descent(tf.optimizers.Optimizer):
        def update(self, xp, k, scratch, g, p):
            other = threading.Thread(target=lambda: other_v.assign_add(1.0))
            other.start()
            other.join(20)
            assert not other.is_alive()
            return (xp.subtract(p, xp.multiply(g, k[0], scratch[0]), p),)

    other_v, v = tf.Variable(0.0), tf.Variable(tf.zeros([10]))
    optimizer = Descent(1.0)
    optimizer.apply_gradients([(tf.ones([10]), v)])
    run(
        repeat(20, lambda: optimizer.apply_gradients([(tf.ones([10]), v)])),
        repeat(20, lambda: v.assign_add(-tf.ones([10]))),
    )
    assert v.numpy().tolist() == [-41.0] * 10


def test_two_optimizers_in_opposite_orders_finish():
    variables = [tf.Variable(tf.zeros([1000])) for _ in range(4)]
    g = tf.ones([1000])
    optimizers = [tf.optimizers.SGD(1.0), tf.optimizers.SGD(1.0)]
    orders = [variables, variables[::-1]]
    run(*(
        repeat(200, lambda opt=opt, order=order: opt.apply_gradients([(g, v) for v in order]))
        for opt, order in zip(optimizers, orders, strict=True)
    ))  # fmt: skip
    assert [v.numpy().tolist() for v in variables] == [[-400.0] * 1000] * 4


def test_one_optimizer_in_several_threads():
    variables = [tf.Variable(tf.zeros([100])) for _ in range(4)]
    optimizer = tf.optimizers.SGD(1.0, momentum=0.0)
    optimizer.build(variables)
    run(*(repeat(200, lambda v=v: optimizer.apply_gradients([(tf.ones([100]), v)])) for v in variables))
    assert [v.numpy().tolist() for v in variables] == [[-200.0] * 100] * 4
    assert int(optimizer.iterations) == 800


@pytest.mark.parametrize("options", [{"use_ema": True}, {"gradient_accumulation_steps": 2}, {"clipnorm": 1.0}], ids=str)
def test_options_beside_other_threads_give_what_they_give_alone(options):
    def trained():
        v = tf.Variable(tf.ones([100]))
        optimizer = tf.optimizers.Adam(0.1, weight_decay=0.01, **options)
        for i in range(7):
            optimizer.apply_gradients([(tf.fill([100], 1.0 + i), v)])
        return [w.numpy() for w in (v, *optimizer.variables)]

    expected, found = trained(), []
    run(lambda: found.append(trained()), repeat(100, lambda: tf.Variable(0.0).assign_add(1.0)))
    for a, b in zip(expected, found[0], strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_checkpoint_written_beside_training_is_read_back_whole(tmp_path):
    v, optimizer = tf.Variable(tf.zeros([N])), tf.optimizers.Adam(0.1)
    checkpoint = tf.train.Checkpoint(v=v, optimizer=optimizer)
    optimizer.build([v])
    done = threading.Event()

    def train():
        while not done.is_set():
            optimizer.apply_gradients([(tf.ones([N]), v)])

    trainer = threading.Thread(target=train)
    trainer.start()
    try:
        paths = [checkpoint.write(str(tmp_path / f"at{i}")) for i in range(10)]
    finally:
        done.set()
        trainer.join()
    for path in paths:
        checkpoint.read(path).assert_consumed()
        assert whole(v.numpy())
        assert all(whole(slot.numpy()) for slot in optimizer.variables)


def test_count_up_to_counts_each_once():
    v, seen = tf.Variable(0), []
    run(*[repeat(50, lambda: seen.append(int(v.count_up_to(200))))] * 4)
    assert sorted(seen) == list(range(200))


def test_an_interrupt_leaves_no_lock_behind():
    v, main = tf.Variable(tf.zeros([N])), threading.main_thread().ident
    for i in range(20):
        timer = threading.Timer(0.001 + 0.0003 * i, lambda: signal.pthread_kill(main, signal.SIGINT))
        try:
            timer.start()
            while True:
                v.assign_add(tf.ones([N]))
        except KeyboardInterrupt:
            pass
        timer.join()
    assert whole(v.numpy())
    run(lambda: v.assign_add(tf.ones([N])))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
def test_a_forked_child_finds_every_lock_free():
    v = tf.Variable(tf.zeros([N]))
    done = threading.Event()
    v.assign_add(tf.ones([N]))

    def update():
        while not done.is_set():
            v.assign_add(tf.ones([N]))

    thread = threading.Thread(target=update)
    thread.start()
    try:
        for _ in range(10):
            child = os.fork()
            if not child:
                before = float(v[0])
                v.assign_add(tf.ones([N]))
                tf.optimizers.SGD(1.0).apply_gradients([(-tf.ones([N]), v)])
                os._exit(0 if whole(v.numpy()) and float(v[0]) == before + 2 else 1)
            limit = time.monotonic() + 20
            while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < limit:
                time.sleep(0.001)
            if ended == (0, 0):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            assert ended == (child, 0)
    finally:
        done.set()
        thread.join()


def test_locks_are_neither_copied_nor_pickled():
    v = tf.Variable(1.0)
    v.assign_add(1.0)
    for other in (copy.deepcopy(v), pickle.loads(pickle.dumps(v))):
        other.assign_add(1.0)
        assert (float(v), float(other)) == (2.0, 3.0)


def test_a_thread_of_another_library_is_seen():
    """One that Python did not start: no list of Python's has it."""
    import ctypes

    v, optimizer, seen = tf.Variable(tf.zeros([N])), tf.optimizers.SGD(1.0), []
    optimizer.apply_gradients([(tf.ones([N]), v)])
    entry = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: seen.append(float(v[0])) or 0)
    library, thread = ctypes.CDLL(None), ctypes.c_ulong()
    library.pthread_create.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    library.pthread_join.argtypes = [ctypes.c_ulong, ctypes.c_void_p]
    assert library.pthread_create(ctypes.byref(thread), None, ctypes.cast(entry, ctypes.c_void_p), None) == 0
    library.pthread_join(thread, None)
    optimizer.apply_gradients([(tf.ones([N]), v)])
    assert seen == [-1.0]
    assert float(v[0]) == -2.0


def test_64_threads_and_a_million_updates():
    small, large = tf.Variable(tf.zeros([8])), tf.Variable(tf.zeros([10_000]))
    one, many, torn = tf.ones([8]), tf.ones([10_000]), []

    def update():
        for i in range(15_625):
            small.assign_add(one)
            if i % 50 == 0:
                large.assign_sub(many)
                torn.extend(t for t in (large.numpy(), small.numpy()) if not whole(t))

    run(*[update] * 64)
    assert small.numpy().tolist() == [1e6] * 8
    assert float(large[0]) == -64 * 313
    assert not torn
