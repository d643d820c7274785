"""What a declined emit entry says: the kernel that it is about, and the storage that it lacks."""

from __future__ import annotations

import numpy as np

from fusion_engine import load_kernels, load_rules, match
from gap_fuse.rooms import room
from tests.matching.given import view_of


def reasons(text: str, rule: str, **constants: np.ndarray) -> list[str]:
    kernels = load_kernels([room("kernels")])
    found = match(view_of(text, **constants), load_rules([room("rules")], kernels), kernels, explain=True)
    return [d.reason for d in found.declines if d.rule == rule]


def test_an_element_type_is_a_storage_in_words() -> None:
    pool = "t (float[1,2,6,6] x) => (float[1,2,3,3] y) { y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x) }"
    said = 'maxpool_i8: no int8 storage for x: it is float32; `dtype(x) == "int8"` does not hold'
    assert reasons(pool, "maxpool") == [said]


def test_an_entry_of_several_calls_is_named_by_its_chief_one() -> None:
    """It was `reshape, conv2d_i8, reshape: ...`."""
    conv = "t (float[1,2,6] x, float[1,2,3] w) => (float[1,1,4] y) { y = Conv(x, w) }"
    found = reasons(conv, "conv1d", w=np.ones((1, 2, 3), np.float32))
    assert "conv2d_i8: no int8 storage for y: it is float32" in found
    assert not any(r.startswith("reshape") for r in found)
