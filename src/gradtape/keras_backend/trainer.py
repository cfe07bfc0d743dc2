"""`fit`, `evaluate` and `predict`: Keras's training loops around steps that are compiled functions of ours.

A step is the model's ``train_step``, ``test_step`` or ``predict_step``, which users override; each becomes one `function`, so
that what it computes, its tape and what the optimizer does are one program. Variables are found when the step is first traced:
weights, metrics, the optimizer's state, seeds. A model that is not built yet is built then.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from keras.src import callbacks as callbacks_module
from keras.src import optimizers as optimizers_module
from keras.src import tree
from keras.src.backend import config
from keras.src.trainers import trainer as base_trainer
from keras.src.trainers.data_adapters import array_slicing, data_adapter_utils
from keras.src.utils import traceback_utils
from keras.src.utils.python_utils import pythonify_logs

from gradtape.core import cuts
from gradtape.core.tape import GradientTape
from gradtape.errors import message
from gradtape.function.autograph import convert
from gradtape.function.decorator import function
from gradtape.function.state import State
from gradtape.keras_backend.batches import Epochs, as_tensors, epochs_of, execution
from gradtape.keras_backend.variables import convert_to_numpy
from gradtape.ops.execution import staging

__all__ = ["NumpyTrainer", "TapeTrainer"]

_PATIENCE = 16
"""Sequences of many lengths: an LSTM takes 1.5 s to compile for each, and 10 to 30 ms a step without."""


class TapeTrainer(base_trainer.Trainer):
    """The part of `keras.Model` that trains."""

    def __init__(self) -> None:
        super().__init__()
        self.train_function: Any = None
        self.test_function: Any = None
        self.predict_function: Any = None
        self._eval_epoch_iterator: Any = None

    # What happens with one batch: users override these

    def train_step(self, data: Any) -> dict:
        """One update of the weights; the logs."""
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        with GradientTape() as tape:
            y_pred = self._predicted(x, training=True)
            loss = self._tracked_loss(x, y, y_pred, sample_weight, training=True)
            if self.optimizer is not None:
                loss = self.optimizer.scale_loss(loss)
        weights = self.trainable_weights
        if weights:
            self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        else:
            warnings.warn("The model does not have any trainable weights.", stacklevel=2)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def test_step(self, data: Any) -> dict:
        """The logs for one batch."""
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        y_pred = self._predicted(x, training=False)
        self._tracked_loss(x, y, y_pred, sample_weight, training=False)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def predict_step(self, data: Any) -> Any:
        """The model's outputs for one batch."""
        x, _, _ = data_adapter_utils.unpack_x_y_sample_weight(data)
        return self._predicted(x, training=False)

    def _predicted(self, x: Any, training: bool) -> Any:
        return self(x, training=training) if self._call_has_training_arg else self(x)

    def _tracked_loss(self, x: Any, y: Any, y_pred: Any, sample_weight: Any, training: bool) -> Any:
        loss = self._compute_loss(x, y, y_pred, sample_weight, training)
        first = next(leaf for leaf in tree.flatten((x, y_pred)) if leaf is not None)
        self._loss_tracker.update_state(loss, sample_weight=first.shape[0])
        return loss

    # The steps as functions of several batches

    @property
    def jit_compile(self) -> bool | str:
        """``"auto"``: compiled, and run eagerly where XLA cannot express the model; True makes that an error."""
        return base_trainer.Trainer.jit_compile.fget(self)

    @jit_compile.setter
    def jit_compile(self, value: bool | str) -> None:
        if value == "auto":
            self._jit_compile = value
        else:
            base_trainer.Trainer.jit_compile.fset(self, value)

    def _resolve_auto_jit_compile(self) -> str:
        return "auto"

    def make_train_function(self, force: bool = False) -> None:
        if force or self.train_function is None:
            self.train_function = self._last_of(self._prepared(self.train_step))

    def make_test_function(self, force: bool = False) -> None:
        if force or self.test_function is None:
            self.test_function = self._last_of(self._prepared(self.test_step))

    def make_predict_function(self, force: bool = False) -> None:
        if force or self.predict_function is None:
            step = self._prepared(self.predict_step)

            def run(batches: Iterable) -> Any:
                outputs = [step(data) for data in execution(batches, self.steps_per_execution)]
                return outputs[0] if len(outputs) == 1 else _joined(outputs)

            self.predict_function = run

    def _prepared(self, step: Callable) -> Callable:
        """The step for a batch of arrays; compiled, unless the model runs eagerly."""

        def traced(*batch: Any) -> Any:
            data = batch if len(batch) > 1 else batch[0]
            if not staging.inside:
                return step(data)
            outputs = convert(step)(data)
            self._clear_losses()  # they are part of the program
            return outputs

        if self.run_eagerly:  # as a program does: an error or an interruption leaves all variables as they were
            return lambda data: State(may_create=True).run(step, as_tensors(data))
        traced.__name__ = step.__name__
        run = function(traced, jit_compile=self.jit_compile is True)
        run.wait = False  # the next batch is made meanwhile
        run.patience = _PATIENCE

        def prepared(data: Any) -> Any:
            batch = as_tensors(data)
            return run(*batch) if type(batch) is tuple and len(batch) > 1 else run(batch)

        return prepared

    def _last_of(self, step: Callable) -> Callable:
        """The steps of one execution; the logs of the last of them."""

        return lambda batches: [step(data) for data in execution(batches, self.steps_per_execution)][-1]

    # Loops

    @traceback_utils.filter_traceback
    def fit(
        self, x: Any = None, y: Any = None, batch_size: int | None = None, epochs: int = 1, verbose: Any = "auto",
        callbacks: Any = None, validation_split: float = 0.0, validation_data: Any = None, shuffle: Any = True,
        class_weight: dict | None = None, sample_weight: Any = None, initial_epoch: int = 0,
        steps_per_epoch: int | None = None, validation_steps: int | None = None, validation_batch_size: int | None = None,
        validation_freq: Any = 1,
    ) -> Any:  # fmt: skip
        """Train for so many epochs; the history of logs."""
        self._assert_compile_called("fit")
        epochs = _limited(epochs)
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = array_slicing.train_validation_split(
                (x, y, sample_weight), validation_split=validation_split
            )
        batches = self._batches(x, y, sample_weight, batch_size, steps_per_epoch, shuffle=shuffle, class_weight=class_weight)
        callbacks = self._callback_list(callbacks, verbose, epochs, batches, add_history=True)
        validation = {"batch_size": validation_batch_size or batch_size, "steps": validation_steps, "callbacks": callbacks}
        self.stop_training = False
        self.make_train_function()
        callbacks.on_train_begin()
        logs = None
        try:
            for epoch in range(self._initial_epoch or initial_epoch, epochs):
                self.reset_metrics()
                callbacks.on_epoch_begin(epoch)
                logs = self._trained_on(batches, callbacks)
                if validation_data is not None and self._should_eval(epoch, validation_freq):
                    logs |= self._validated(validation_data, **validation)
                callbacks.on_epoch_end(epoch, logs)
                if self.stop_training:
                    break
        finally:
            self._eval_epoch_iterator = None
        if isinstance(self.optimizer, optimizers_module.Optimizer) and epochs > 0:
            self.optimizer.finalize_variable_values(self.trainable_weights)
        callbacks.on_train_end(logs=logs)
        return self.history

    def _trained_on(self, batches: Epochs, callbacks: Any) -> dict:
        """The logs of one epoch."""
        logs: Any = {}
        with batches.catch_stop_iteration():
            for begin, end, iterator in batches:
                callbacks.on_train_batch_begin(begin)
                logs = self.train_function(iterator)
                callbacks.on_train_batch_end(end, logs)
                if self.stop_training:
                    break
        return dict(self._get_metrics_result_or_logs(logs))

    def _validated(self, data: Any, steps: int | None, **options: Any) -> dict:
        """The logs of one pass over the validation data, whose batches are prepared once."""
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        if self._eval_epoch_iterator is None:
            self._eval_epoch_iterator = self._batches(x, y, sample_weight, options["batch_size"], steps)
        logs = self.evaluate(
            x, y, sample_weight=sample_weight, steps=steps, return_dict=True, _use_cached_eval_dataset=True, **options
        )
        return {f"val_{name}": value for name, value in logs.items()}

    @traceback_utils.filter_traceback
    def evaluate(
        self, x: Any = None, y: Any = None, batch_size: int | None = None, verbose: Any = "auto", sample_weight: Any = None,
        steps: int | None = None, callbacks: Any = None, return_dict: bool = False, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """Loss and metrics, over all batches."""
        self._assert_compile_called("evaluate")
        cached = kwargs.pop("_use_cached_eval_dataset", False)
        if kwargs:
            raise ValueError(message(f"Arguments not recognized: {kwargs}", received=f"{sorted(kwargs)}"))
        if cached:
            batches = self._eval_epoch_iterator
            batches.reset()
        else:
            batches = self._batches(x, y, sample_weight, batch_size, steps)
        callbacks = self._callback_list(callbacks, verbose, 1, batches)
        self.make_test_function()
        self.stop_evaluating = False
        callbacks.on_test_begin()
        self.reset_metrics()
        logs: Any = {}
        with batches.catch_stop_iteration():
            for begin, end, iterator in batches:
                callbacks.on_test_batch_begin(begin)
                logs = self.test_function(iterator)
                callbacks.on_test_batch_end(end, logs)
                if self.stop_evaluating:
                    break
        logs = pythonify_logs(self._get_metrics_result_or_logs(logs))
        callbacks.on_test_end(logs)
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    @traceback_utils.filter_traceback
    def predict(
        self, x: Any, batch_size: int | None = None, verbose: Any = "auto", steps: int | None = None, callbacks: Any = None
    ) -> Any:
        """The model's outputs as NumPy arrays: a tape does not see through them, ``model(x)`` is what it records."""
        batches = self._batches(x, batch_size=batch_size, steps=steps)
        callbacks = self._callback_list(callbacks, verbose, 1, batches)
        self.make_predict_function()
        self.stop_predicting = False
        callbacks.on_predict_begin()
        outputs = []
        with cuts.during(cuts.PREDICT):
            with batches.catch_stop_iteration():
                for begin, end, iterator in batches:
                    callbacks.on_predict_batch_begin(begin)
                    outputs.append(self.predict_function(iterator))
                    callbacks.on_predict_batch_end(end, {"outputs": outputs[-1]})
                    if self.stop_predicting:
                        break
            callbacks.on_predict_end()
            if not outputs:
                raise ValueError(message("predict received no data.", received="no batch at all", expected="one or more"))
            return _joined(outputs)

    def _batches(
        self, x: Any, y: Any = None, sample_weight: Any = None, batch_size: int | None = None, steps: int | None = None,
        shuffle: Any = False, class_weight: dict | None = None,
    ) -> Epochs:  # fmt: skip
        return epochs_of(
            x, y, sample_weight, class_weight, batch_size=batch_size, steps_per_epoch=steps, shuffle=shuffle,
            steps_per_execution=self.steps_per_execution,
        )  # fmt: skip

    def _callback_list(self, callbacks: Any, verbose: Any, epochs: int, batches: Epochs, **options: Any) -> Any:
        if isinstance(callbacks, callbacks_module.CallbackList):
            return callbacks
        options |= {"add_progbar": verbose != 0, "verbose": verbose, "epochs": epochs, "steps": batches.num_batches}
        return callbacks_module.CallbackList(callbacks, model=self, **options)

    # Single batches

    def train_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, class_weight: dict | None = None, return_dict: bool = False
    ) -> Any:
        """One update; loss and metrics of this batch."""
        self._assert_compile_called("train_on_batch")
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError(
                    message(
                        "Arguments `sample_weight` and `class_weight` cannot be specified at the same time.",
                        received=f"sample_weight={sample_weight}, class_weight={class_weight}",
                        fix="sample weights that are multiplied by those of the classes",
                    )
                )
            sample_weight = data_adapter_utils.class_weight_to_sample_weights(y, class_weight)
        self.make_train_function()
        return self._logged(self.train_function, (x, y, sample_weight), return_dict)

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False) -> Any:
        """Loss and metrics of this batch."""
        self._assert_compile_called("test_on_batch")
        self.make_test_function()
        return self._logged(self.test_function, (x, y, sample_weight), return_dict)

    def predict_on_batch(self, x: Any) -> Any:
        """The model's outputs for this batch, as NumPy arrays."""
        self.make_predict_function()
        with cuts.during(cuts.PREDICT):
            return tree.map_structure(convert_to_numpy, self.predict_function(iter([(x,)])))

    def _logged(self, run: Callable, data: tuple, return_dict: bool) -> Any:
        self.reset_metrics()
        logs = pythonify_logs(run(iter([data])))
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    def _get_metrics_result_or_logs(self, logs: Any) -> Any:
        if self._compile_metrics is not None and not self._compile_metrics.built:
            return logs  # a step of the user's own has not used them
        return super()._get_metrics_result_or_logs(logs)

    # Older names, which steps written for Keras 2 use

    def compiled_loss(self, y: Any, y_pred: Any, sample_weight: Any = None, regularization_losses: Any = None) -> Any:
        """`compute_loss`, which has the losses of layers in it; the model's loss metric is updated."""
        warnings.warn(
            "`model.compiled_loss()` is deprecated. Instead, use `model.compute_loss(x, y, y_pred, sample_weight, training)`.",
            stacklevel=2,
        )
        return self._tracked_loss(None, y, y_pred, sample_weight, training=True)

    @property
    def compiled_metrics(self) -> _CompiledMetrics:
        """The metrics given to `compile`: ``update_state`` updates them."""
        return _CompiledMetrics(self._compile_metrics)


class _CompiledMetrics:
    def __init__(self, metrics: Any) -> None:
        self._metrics = metrics

    def update_state(self, y: Any, y_pred: Any, sample_weight: Any = None) -> None:
        warnings.warn(
            "`model.compiled_metrics` is deprecated. Instead, call `update_state(y, y_pred)` of each of `model.metrics`.",
            stacklevel=2,
        )
        if self._metrics is not None:
            self._metrics.update_state(y, y_pred, sample_weight=sample_weight)


def _limited(epochs: int) -> int:
    """The number of epochs, or of those that the settings of this process allow."""
    most = config.max_epochs()
    if not most or most >= epochs:
        return epochs
    warnings.warn(f"Limiting epochs to {most}", stacklevel=4)
    return most


def _joined(outputs: list) -> Any:
    """Outputs of several batches one after another, as NumPy arrays."""

    def join(*parts: Any) -> Any:
        if parts[0] is None:
            return None
        arrays = [convert_to_numpy(part) for part in parts]
        return np.concatenate(arrays) if arrays[0].ndim else np.stack(arrays)

    return tree.map_structure(join, *outputs)


NumpyTrainer = TapeTrainer  # the name by which Keras asks for it
