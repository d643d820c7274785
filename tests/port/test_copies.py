"""gf_copy_box against numpy and against the planner's count, under every timing of the copies."""

from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.port.building import L2, LIMITS, compile_port
from tiler.moves import count_box

DIMS = 8
BETWEEN = 2048  # where the near side begins
HOPS = ("l2_l1", "l3_l2")


class CBox(ctypes.Structure):
    _fields_ = (
        ("far", ctypes.c_uint32), ("near", ctypes.c_void_p), ("item", ctypes.c_int32), ("rank", ctypes.c_int32),
        ("extent", ctypes.c_int32 * DIMS), ("pitch", ctypes.c_int32 * DIMS),
    )  # fmt: skip


class CTicket(ctypes.Structure):
    _fields_ = (("open", ctypes.c_int32), ("id", ctypes.c_uint32), ("in_flight", ctypes.c_int32))


class CHost(ctypes.Structure):
    _fields_ = (
        ("timing", ctypes.c_int),
        ("seed", ctypes.c_uint32),
        ("weights", ctypes.c_char_p),
        ("counters", ctypes.c_char_p),
    )


@dataclass(frozen=True)
class Box:
    item: int
    extent: tuple[int, ...]
    pitch: tuple[int, ...]  # bytes, without overlaps
    far: int

    @property
    def bytes(self) -> int:
        return int(np.prod(self.extent, dtype=int)) * self.item

    def view(self, level: np.ndarray) -> np.ndarray:
        """The box's bytes in the far level, one row of `item` bytes per element."""
        return np.lib.stride_tricks.as_strided(level[self.far :], (*self.extent, self.item), (*self.pitch, 1))


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    """Dims outermost first, each pitch at least the span of the dims within, now and then contiguous."""
    item = draw(st.sampled_from([1, 2, 4]))
    span, extent, pitch = item, [], []
    for _ in range(draw(st.integers(0, 4))):
        n = draw(st.integers(0, 6))
        gap = draw(st.sampled_from([0, 0, item, 3 * item, 100]))
        if span + gap > 400 or n * (span + gap) > 1500:
            break
        extent.insert(0, n)
        pitch.insert(0, span + gap)
        span = max(n, 1) * (span + gap)
    return Box(item, tuple(extent) or (1,), tuple(pitch) or (item,), draw(st.integers(0, 50)) * 4)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    lib = ctypes.CDLL(str(compile_port(tmp_path_factory.mktemp("port"))))
    lib.gf_near.restype = ctypes.c_void_p
    return lib


def _open(lib: ctypes.CDLL, timing: int, seed: int, counters: bytes) -> None:
    """`counters` must outlive gf_port_close."""
    host = CHost.in_dll(lib, "gf_host")
    host.timing, host.seed, host.counters = timing, seed, counters
    assert lib.gf_port_open() == 0
    lib.gf_call_begin(1)


@given(box=boxes(), hop=st.sampled_from([0, 1]), out=st.booleans(), timing=st.integers(0, 2), seed=st.integers(0, 99))
def test_box_moves_the_right_bytes_in_the_planned_commands(
    port: ctypes.CDLL, tmp_path_factory: pytest.TempPathFactory, box: Box, hop: int, out: bool, timing: int, seed: int
) -> None:
    counters = tmp_path_factory.getbasetemp() / "counters.json"
    path = str(counters).encode()
    _open(port, timing, seed, path)
    far_level, near_level = (1, 0) if hop == 0 else (2, 1)
    junk = np.random.default_rng(seed)
    far = junk.integers(0, 256, 4096, dtype=np.uint8)
    tile = junk.integers(0, 256, (*box.extent, box.item), dtype=np.uint8)
    port.gf_put(far_level, 0, far.ctypes.data_as(ctypes.c_void_p), far.size)
    if out and box.bytes:
        port.gf_put(near_level, BETWEEN, tile.ctypes.data_as(ctypes.c_void_p), box.bytes)
    near = ctypes.c_void_p(port.gf_near(hop) + BETWEEN)
    pad = (0,) * (DIMS - len(box.extent))
    c = CBox(
        box.far,
        near,
        box.item,
        len(box.extent),
        (ctypes.c_int32 * DIMS)(*box.extent, *pad),
        (ctypes.c_int32 * DIMS)(*box.pitch, *pad),
    )
    ticket = CTicket()
    port.gf_copy_box(hop, int(out), ctypes.byref(c), ctypes.byref(ticket))
    assert ticket.open == int(box.bytes > 0)
    if ticket.open:
        port.gf_copy_wait(ctypes.byref(ticket))
    got_far, got_near = np.zeros_like(far), np.zeros_like(tile)
    port.gf_get(far_level, 0, got_far.ctypes.data_as(ctypes.c_void_p), far.size)
    port.gf_get(near_level, BETWEEN, got_near.ctypes.data_as(ctypes.c_void_p), box.bytes)
    port.gf_port_close()
    if box.bytes and out:
        box.view(far)[...] = tile
    elif box.bytes:
        np.testing.assert_array_equal(got_near, box.view(far))
    np.testing.assert_array_equal(got_far, far)  # nothing but the box has changed
    moved = next(e for e in json.loads(counters.read_text()) if e["call"] == "second")[HOPS[hop]]
    assert (moved["bytes"], moved["transfers"]) == count_box(box.extent, box.pitch, box.item, LIMITS[HOPS[hop]])


def test_limits_leave_room_for_the_drawn_boxes() -> None:
    assert 50 * 4 + 1500 * 2 < 4096 < L2
