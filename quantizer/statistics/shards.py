"""Shard files: a part of the samples' statistics, to be joined without loss elsewhere.

An .npz of plain arrays (no pickles): `header`, JSON text as bytes, and per tensor k its columns, `k/bin` and so on
(quantizer/statistics/populations.py). Written with fixed time stamps: the same statistics give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import numpy as np

from fusion_engine.npz import load_arrays, opened, write_arrays
from quantizer.statistics.collecting import Statistics, Tally
from quantizer.statistics.populations import Populations

FORMAT = "gap-fuse tensor statistics shard"
VERSION = 1
COLUMNS = tuple(f.name for f in fields(Populations))
FLOATS = ("low", "high")
PER_CHANNEL = 5
"""The first columns have one entry per population, the others one per row of the table."""


def write_shard(statistics: Statistics, path: Path) -> None:
    """Write statistics at `path` (.npz)."""
    tallies = list(statistics.tensors.items())
    header = [{"name": name, "axis": t.axis, "note": t.note} for name, t in tallies]
    text = json.dumps({"format": FORMAT, "version": VERSION, "tensors": header})
    arrays = {"header": np.frombuffer(text.encode(), np.uint8)}
    for k, (_, t) in enumerate(tallies):
        arrays |= {f"{k}/{column}": getattr(t.populations, column) for column in COLUMNS}
    write_arrays(path, arrays, compressed=True)


def read_shard(path: Path) -> Statistics:
    """Read what `write_shard` wrote. Raises GapFuseError for anything else."""
    with opened(path, "a shard of tensor statistics", "`gap-fuse stats -o X.npz` writes them"):
        return _statistics(load_arrays(path))


def _statistics(arrays: Mapping[str, np.ndarray]) -> Statistics:
    header = json.loads(bytes(arrays["header"]))
    if header["format"] != FORMAT or header["version"] != VERSION:
        raise ValueError(f"format {header['format']!r} version {header['version']!r} is not {FORMAT!r} {VERSION}")
    return Statistics(
        {
            t["name"]: Tally(_populations([arrays[f"{k}/{c}"] for c in COLUMNS]), t["axis"], t["note"])
            for k, t in enumerate(header["tensors"])
        }
    )


def _populations(columns: list[np.ndarray]) -> Populations:
    sizes = [len(c) for c in columns]
    if {*sizes[:PER_CHANNEL]} != {sizes[0]} or {*sizes[PER_CHANNEL:]} != {sizes[-1]}:
        raise ValueError(f"columns of unlike lengths {sizes}")
    kinds = [np.float64 if name in FLOATS else np.int64 for name in COLUMNS]
    if any(c.dtype != kind or c.ndim != 1 for c, kind in zip(columns, kinds, strict=True)):
        raise ValueError("a column is not of its type")
    owner = columns[COLUMNS.index("owner")]
    if len(owner) and not 0 <= owner.min() <= owner.max() < sizes[0]:
        raise ValueError("a row belongs to no channel")
    return Populations(*columns)
