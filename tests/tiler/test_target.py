"""Targets: the shipped ones load, wrong ones say where they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_engine.diagnostics import GapFuseError
from tiler import load_target


@pytest.mark.parametrize("name", ["host", "gap8"])
def test_shipped_targets_have_room_for_plans(root: Path, name: str) -> None:
    target = load_target(root / "targets" / name)
    assert target.name == name
    assert target.cores == 8
    assert target.clock == 175e6
    assert target.has_port == (name == "host")
    for level in target.levels.values():
        assert level.budget == level.bytes - sum(level.reserved.values()) > 0


def test_budgets_replace_the_targets_own(root: Path) -> None:
    target = load_target(root / "targets" / "host").with_budgets(l1=1000, l2=2000)
    assert [target.budget(n) for n in ("l1", "l2")] == [1000, 2000]
    assert target.budget("l3") == target.levels["l3"].bytes


def test_a_budget_beyond_the_memory_is_noted(root: Path) -> None:
    target = load_target(root / "targets" / "host")
    room = target.budget("l1")
    assert target.beyond() == target.with_budgets(l1=room).beyond() == ()
    assert target.with_budgets(l1=131072).budget("l1") == 131072
    assert target.with_budgets(l1=131072).beyond() == (f"l1 is planned with 131072 bytes, host has {room}",)


@pytest.mark.parametrize("l1", [0, -5])
def test_a_budget_below_one_byte_is_refused(root: Path, l1: int) -> None:
    with pytest.raises(GapFuseError, match="l1"):
        load_target(root / "targets" / "host").with_budgets(l1=l1)


@pytest.mark.parametrize(
    ("find", "put", "message", "line"),
    [
        ("bytes_per_cycle: 8", "bytes_per_cycle: fast", "number above zero", True),
        ("l1:", "l0:", "unknown key `l0`", True),
        ("cores: 8", "cores: 0", "cores cannot be 0", True),
        ("max_bytes: 32764", "max_bytes: 3", "at least 16", True),
        ("stacks: 23296", "stacks: 99999", "bytes left", True),
        ("team: {cores", "teem: {cores", "unknown key `teem`", True),
        ("175 MHz", "fast", "a frequency such as 175 MHz", True),
        ("175 MHz", "0 MHz", "a frequency such as 175 MHz", True),
    ],
)
def test_errors_have_a_place(root: Path, tmp_path: Path, find: str, put: str, message: str, line: bool) -> None:
    text = (root / "targets" / "host" / "target.yaml").read_text()
    assert find in text
    (tmp_path / "target.yaml").write_text(text.replace(find, put, 1))
    with pytest.raises(GapFuseError, match=message) as caught:
        load_target(tmp_path)
    assert any(d.span is not None and (d.span.line > 0) == line for d in caught.value.diagnostics)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GapFuseError, match="cannot read"):
        load_target(tmp_path)


@given(st.text(max_size=200))
def test_any_text_is_a_target_or_a_located_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("target")
    (folder / "target.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(GapFuseError):
        load_target(folder)
