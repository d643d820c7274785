"""The emitter: a schedule as readable C99."""

from tiler.emit.tree import SourceTree, emit

__all__ = ["SourceTree", "emit"]
