"""The L1 of one tile: every buffer between guards that nobody may touch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

GUARD = 64  # bytes of known junk on both sides of every L1 buffer


class StrayAccess(AssertionError):  # noqa: N818
    """The C wrote where it must not."""


class Hides(Protocol):
    """What can hide memory from the C, where it is built with the address sanitizer."""

    def hide(self, address: int, size: int) -> None: ...
    def reveal(self, address: int, size: int) -> None: ...


class L1:
    """Buffers between guards. What is not writable must stay as it is."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.pitch: dict[str, int] = {}
        self.working: set[str] = set()
        self._raw: dict[str, np.ndarray] = {}
        self._start: dict[str, int] = {}
        self._data: dict[str, np.ndarray] = {}
        self._offset: dict[str, int] = {}
        self._sealed: dict[str, bytes] = {}
        self._writable: set[str] = set()

    def place(self, name: str, data: np.ndarray, pitch: int = 0, working: bool = False) -> None:
        raw = np.frombuffer(self.rng.bytes(data.nbytes + 2 * GUARD + 64), np.uint8).copy()
        start = GUARD + (-(raw.ctypes.data + GUARD - 16)) % 64  # 16-byte aligned, not more
        raw[start : start + data.nbytes] = np.frombuffer(data.tobytes(), np.uint8)
        self._raw[name], self._start[name], self._data[name] = raw, start, data
        if working:
            self.working.add(name)
            self.pitch[name] = pitch

    def place_inside(self, name: str, tensor: np.ndarray, at: int) -> None:
        """A tile that begins at element `at` of its tensor, which is in L1 as a whole."""
        self.place(name, tensor)
        self._offset[name] = at * tensor.itemsize

    def place_over(self, name: str, other: str) -> None:
        """A result at the very bytes of an operand, which may be written then."""
        self._raw[name], self._start[name], self._data[name] = self._raw[other], self._start[other], self._data[other]
        self.working.add(other)

    def address(self, name: str) -> int | None:
        if name not in self._raw:
            return None
        return self._raw[name].ctypes.data + self._start[name] + self._offset.get(name, 0)

    def bytes_of(self, name: str) -> np.ndarray:
        return self._raw[name][self._start[name] : self._start[name] + self._data[name].nbytes]

    def array(self, name: str) -> np.ndarray:
        data = self._data[name]
        return np.frombuffer(self.bytes_of(name).tobytes(), data.dtype).reshape(data.shape)

    def guard(self, library: Hides) -> None:
        """Hide what lies around every buffer, so that reading it is noticed too."""
        for name, raw in self._raw.items():
            start, end = self._start[name], self._start[name] + self._data[name].nbytes
            library.hide(raw.ctypes.data, start)
            library.hide(raw.ctypes.data + end, raw.nbytes - end)

    def reveal(self, library: Hides) -> None:
        """Undo `guard`."""
        for raw in self._raw.values():
            library.reveal(raw.ctypes.data, raw.nbytes)

    def itemsize(self, name: str) -> int:
        return int(self._data[name].itemsize)

    def contents(self) -> dict[str, bytes]:
        """What the writable buffers hold."""
        return {n: self.bytes_of(n).tobytes() for n in self._raw if n in self._writable}

    def fill(self, contents: Mapping[str, bytes]) -> None:
        """Put back what `contents` gave."""
        for name, data in contents.items():
            self.bytes_of(name)[:] = np.frombuffer(data, np.uint8)

    def seal(self, writable: set[str]) -> None:
        self._writable = writable
        self._sealed = {n: raw.tobytes() for n, raw in self._raw.items()}

    def check(self, what: str) -> None:
        for name, before in self._sealed.items():
            now, start, size = self._raw[name].tobytes(), self._start[name], self._data[name].nbytes
            _require(now[:start] == before[:start], f"{what} wrote in front of `{name}`")
            _require(now[start + size :] == before[start + size :], f"{what} wrote behind `{name}`")
            if name not in self._writable:
                _require(now == before, f"{what} wrote into `{name}`")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise StrayAccess(message)
