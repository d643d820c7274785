"""docs/report.md and the report say the same."""

from __future__ import annotations

import re
from pathlib import Path

import gap_fuse

ROOT = Path(__file__).resolve().parents[2]


def documented(table: str) -> set[str]:
    """The names in the first column of a table."""
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_every_key_is_documented_and_every_documented_key_is_there() -> None:
    report = gap_fuse.compile(ROOT / "examples" / "digits" / "digits_int8.onnx").report
    text = (ROOT / "docs" / "report.md").read_text()
    top, calls, groups = re.split(r"Each entry of `(?:calls|groups)`", text)
    assert documented(top) == set(report)
    for table, entries in ((calls, report["calls"]), (groups, report["groups"])):
        assert entries
        assert all(documented(table) == set(entry) for entry in entries)
    assert set(re.findall(r"`(\w+)`", next(r for r in top.splitlines() if r.startswith("| `bounds`")))) - {
        "bounds"
    } == set(report["bounds"])
