"""FusedGraph and target to a schedule, and to C."""

from tiler.binding import bind
from tiler.planner import schedule
from tiler.schedule import Schedule
from tiler.target import Target, load_target

__all__ = ["Schedule", "Target", "bind", "load_target", "schedule"]
