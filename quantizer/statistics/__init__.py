"""What samples say about tensors: tallies that join exactly, in bounded memory, and what a model's metadata holds."""

from quantizer.statistics.channels import channel_axes
from quantizer.statistics.collecting import Feeds, Run, Statistics, Tally, collect, count, join
from quantizer.statistics.measures import bin_edges
from quantizer.statistics.metadata import annotate, constant_statistics, statistics_of
from quantizer.statistics.published import KnownRange, TensorStatistics
from quantizer.statistics.ranges import known_ranges, known_statistics
from quantizer.statistics.shards import read_shard, write_shard

__all__ = [
    "Feeds",
    "KnownRange",
    "Run",
    "Statistics",
    "Tally",
    "TensorStatistics",
    "annotate",
    "bin_edges",
    "channel_axes",
    "collect",
    "constant_statistics",
    "count",
    "join",
    "known_ranges",
    "known_statistics",
    "read_shard",
    "statistics_of",
    "write_shard",
]
