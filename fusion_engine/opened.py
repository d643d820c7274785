"""Filling in frozen values by the ten thousands."""

from __future__ import annotations

from typing import Any


def opened(frozen: type) -> Any:
    """A subclass of a frozen dataclass with slots whose fields can be set: a fifth of the time of its `__init__`.

    Set them all on a new object, then set its `__class__` to the frozen class.
    """
    free = {"__setattr__": object.__setattr__, "__delattr__": object.__delattr__}  # both, or neither is fast
    return type(frozen.__name__, (frozen,), {"__slots__": (), **free})
