"""Chooses a checkpoint interval for a stream without end whose user has set none.

Sinks commit at checkpoints, so without any such a stream would run and never show a result. A
stream that ends commits everything with its last checkpoint and needs no interval (spec C2, C14).
"""

import logging

from weir.api.config import JobConfig
from weir.api.duration import SECOND, format_duration
from weir.connectors.noop_sink import NoopSink
from weir.dataflow.logical import Node, Read, WrittenStream, inputs_of

log = logging.getLogger("weir.spark")

DEFAULT_INTERVAL = 10 * SECOND


def with_interval(config: JobConfig, written: WrittenStream) -> JobConfig:
    """The configuration by which the stream's results are committed while it runs."""
    checkpointing = config.checkpointing
    if checkpointing.is_periodic or isinstance(written.sink, NoopSink) or is_bounded(written):
        return config
    if "interval" in checkpointing.model_fields_set:
        log.warning(
            "weir.checkpointing.interval = %s takes no checkpoints, and the sink commits at"
            " checkpoints only: results appear when a checkpoint or savepoint is asked for.",
            format_duration(checkpointing.interval),
        )
        return config
    log.warning(
        "weir.checkpointing.interval is not set, and the sink commits at checkpoints only: one is"
        " taken every %s. Set the interval to choose how often results appear.",
        format_duration(DEFAULT_INTERVAL),
    )
    chosen = checkpointing.model_copy(update={"interval": DEFAULT_INTERVAL})
    return config.model_copy(update={"checkpointing": chosen})


def is_bounded(node: Node | WrittenStream) -> bool:
    """Whether every source of the stream ends by itself."""
    if isinstance(node, Read):
        return node.source.is_bounded
    return all(is_bounded(below) for below in inputs_of(node))
