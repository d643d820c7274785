"""Layer by layer under other tilers' own cost formulas: never behind the brute force, or behind those tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.layer_by_layer import layer_by_layer

ROWS = [
    "KWS/16000/SB",
    "KWS/16000/DB",
    "KWS/8000/SB",
    "IC/16000/DB",
    "AD/16000/SB",
    "AD/16000/DB",
    "CNN_Linear2/16000/DB",
]


@pytest.mark.shared
@pytest.mark.parametrize("name", ROWS)
def test_no_row_is_behind(shared: Path, name: str) -> None:
    baselines = json.loads((shared / "baselines" / "tiling.json").read_text())
    network, l1, buffers = name.split("/")
    row = baselines["results"][name]
    total = layer_by_layer(baselines["layers"][network], int(l1), buffers == "DB")
    assert total is not None
    assert total.bytes <= 1.02 * row["ref"]
    assert total.tiles <= 1.1 * row["ref_tiles"]
    assert all(total.bytes <= row[tool] for tool in ("dory", "deeploy") if row.get(tool))
