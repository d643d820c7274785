"""The tiler: a graph of kernel calls and a target in, a schedule and its C out."""

from tiler.best_order import order_and_schedule
from tiler.emit import SourceTree, emit
from tiler.exploring import Tradeoff, pareto, smallest_memories, timeline_of
from tiler.planner import schedule
from tiler.schedule import Schedule
from tiler.target import Target, load_target

__all__ = [
    "Schedule",
    "SourceTree",
    "Target",
    "Tradeoff",
    "emit",
    "load_target",
    "order_and_schedule",
    "pareto",
    "schedule",
    "smallest_memories",
    "timeline_of",
]
