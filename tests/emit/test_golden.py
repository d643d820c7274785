"""One emitted call kept as text, so that a change of the printer shows in a diff.

After a wanted change: GOLDEN=write pytest tests/emit/test_golden.py
"""

from __future__ import annotations

import os
import re

import pytest

import gap_fuse
from tests.conftest import ROOT

GOLDEN = ROOT / "tests" / "emit" / "golden"
CALLS = ["conv2d_i8_1"]  # digits at 2,500 bytes of L1: two split axes, tiles sent ahead, a result that stays in L1


def _call(name: str) -> str:
    """The text of one call in network.c: its comment, its copies, its function."""
    model = ROOT / "examples" / "digits" / "digits_int8.onnx"
    text = bytes(gap_fuse.compile(model, l1=2500).source.files["network.c"]).decode()
    found = re.search(rf"^/\* {name}: .*?^static void run_{name}\(void\) \{{\n.*?^\}}\n", text, flags=re.M | re.S)
    assert found is not None
    return found[0]


@pytest.mark.parametrize("name", CALLS)
def test_the_call_is_printed_as_kept(name: str) -> None:
    path, text = GOLDEN / f"{name}.c", _call(name)
    if os.environ.get("GOLDEN") == "write":
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), "wanted? then: GOLDEN=write pytest tests/emit/test_golden.py"
