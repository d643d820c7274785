"""From a float model and samples to statistics, and from those to a standard QDQ model."""

from quantizer.prepare import prepare
from quantizer.quantise import activations, quantise
from quantizer.statistics import (
    KnownRange,
    Statistics,
    Tally,
    TensorStatistics,
    annotate,
    bin_edges,
    channel_axes,
    collect,
    constant_statistics,
    count,
    join,
    known_ranges,
    known_statistics,
    read_shard,
    statistics_of,
    write_shard,
)

__all__ = [
    "KnownRange",
    "Statistics",
    "Tally",
    "TensorStatistics",
    "activations",
    "annotate",
    "bin_edges",
    "channel_axes",
    "collect",
    "constant_statistics",
    "count",
    "join",
    "known_ranges",
    "known_statistics",
    "prepare",
    "quantise",
    "read_shard",
    "statistics_of",
    "write_shard",
]
