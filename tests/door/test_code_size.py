"""The built code has to fit beside the plan's data: `verify` looks at what the compiler made."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import gap_fuse
from gap_fuse.code_size import CodeSize

SIZE = CodeSize("l2", bytes=1000, reserved=300, rest=100, peak=500, code=250)


def test_code_within_its_reservation_passes() -> None:
    assert SIZE.passed
    assert str(SIZE) == (
        "250 B of code and tables by the compiler here; 300 are set aside (levels.l2.reserved.code of target.yaml)"
    )


def test_more_code_passes_where_the_data_leave_room() -> None:
    more = replace(SIZE, code=400)
    assert more.passed
    assert "more, but beside 500 of data they fit" in str(more)


def test_more_code_than_there_is_room_for_names_the_budget_that_would_do() -> None:
    more = replace(SIZE, code=450)
    assert not more.passed
    assert "compile with --l2 450" in str(more)


def test_a_plan_beyond_the_memory_is_not_judged() -> None:
    assert replace(SIZE, peak=900).passed


@pytest.mark.skipif(shutil.which("size") is None, reason="size (binutils) is not installed")
@pytest.mark.parametrize(("code", "fits"), [(98304, True), (1000, False)])
def test_verify_measures_what_was_built(root: Path, tmp_path: Path, code: int, fits: bool) -> None:
    target = tmp_path / "tight"
    shutil.copytree(root / "targets" / "host", target)
    text = (target / "target.yaml").read_text()
    small = text.replace("code: 98304", f"code: {code}").replace("bytes: 524288", f"bytes: {code + 33_000}")
    (target / "target.yaml").write_text(small)
    result = gap_fuse.compile(root / "examples" / "digits" / "digits_int8.onnx", target)
    verdict = gap_fuse.verify(result.write(tmp_path / "out"), samples=1)
    assert verdict.size is not None
    assert verdict.size.code > 10_000
    assert verdict.passed == verdict.size.passed == fits
    assert ("too much beside" in str(verdict)) == (not fits)
