"""What samples say about tensors: tallies that join exactly, in bounded memory, and what a model's metadata holds."""

from quantizer.statistics.channels import channel_axes
from quantizer.statistics.collecting import Feeds, Run, Statistics, Tally, collect, count, join
from quantizer.statistics.metadata import annotate, constant_statistics, statistics_of
from quantizer.statistics.published import TensorStatistics
from quantizer.statistics.shards import read_shard, write_shard

__all__ = [
    "Feeds",
    "Run",
    "Statistics",
    "Tally",
    "TensorStatistics",
    "annotate",
    "channel_axes",
    "collect",
    "constant_statistics",
    "count",
    "join",
    "read_shard",
    "statistics_of",
    "write_shard",
]
