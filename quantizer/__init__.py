"""From a float model and samples to statistics, and from those to a standard QDQ model."""

from quantizer.prepare import prepare
from quantizer.quantise import activations, quantise
from quantizer.statistics import (
    Statistics,
    Tally,
    TensorStatistics,
    annotate,
    channel_axes,
    collect,
    constant_statistics,
    count,
    join,
    read_shard,
    statistics_of,
    write_shard,
)

__all__ = [
    "Statistics",
    "Tally",
    "TensorStatistics",
    "activations",
    "annotate",
    "channel_axes",
    "collect",
    "constant_statistics",
    "count",
    "join",
    "prepare",
    "quantise",
    "read_shard",
    "statistics_of",
    "write_shard",
]
