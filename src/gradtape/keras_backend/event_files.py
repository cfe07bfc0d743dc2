"""Keras's `TensorBoard` callback asks for TensorFlow's writer of event files: here it gets `gradtape.summary`."""

from __future__ import annotations

import warnings
from typing import Any

from keras.src.callbacks import tensorboard

from gradtape import summary


def install() -> None:
    """From now on the callback writes with our writer."""
    tensorboard.TensorBoard.summary = property(lambda self: summary)
    tensorboard.keras_model_summary = model_summary


def model_summary(name: str, data: Any, step: Any = None) -> bool:
    """Write a model as TensorBoard's page of graphs reads it; whether that was possible."""
    from tensorboardX.proto.summary_pb2 import SummaryMetadata

    metadata = SummaryMetadata()
    metadata.plugin_data.plugin_name = "graph_keras_model"
    metadata.plugin_data.content = b"1"  # the version of the format
    try:
        text = data.to_json()
    except Exception as error:  # a layer of the user that cannot be described: no reason not to train
        warnings.warn(f"The model is not written to TensorBoard: {error}", stacklevel=2)
        return False
    with summary.experimental.summary_scope(name, "graph_keras_model", [data, step]) as (tag, _):
        return bool(summary.write(tag, text, step, metadata))
