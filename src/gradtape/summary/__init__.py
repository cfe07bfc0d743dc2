"""`tf.summary`: event files for TensorBoard."""

from types import SimpleNamespace

from gradtape.scope import missing
from gradtape.summary.values import (
    audio,
    graph,
    histogram,
    image,
    scalar,
    text,
    trace_export,
    trace_off,
    trace_on,
    write,
    write_raw_pb,
)
from gradtape.summary.writer import (
    SummaryWriter,
    create_file_writer,
    create_noop_writer,
    flush,
    get_step,
    record_if,
    set_step,
    should_record_summaries,
    summary_scope,
)

__all__ = [
    "SummaryWriter", "audio", "create_file_writer", "create_noop_writer", "experimental", "flush", "graph", "histogram",
    "image", "record_if", "scalar", "should_record_summaries", "text", "trace_export", "trace_off", "trace_on", "write",
]  # fmt: skip

experimental = SimpleNamespace(
    get_step=get_step, set_step=set_step, summary_scope=summary_scope, write_raw_pb=write_raw_pb
)

__getattr__ = missing(__name__, __all__)
