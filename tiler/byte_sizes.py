"""Sizes of memories as people write them. 1 kB is 1024 bytes, here and wherever gap-fuse prints it."""

from __future__ import annotations

import re

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
FORMS = "bytes, or a size such as 32k, 32kB, 32KiB or 1.5M (1 kB = 1024 bytes)"
_SIZE = re.compile(r"(\d[\d_,]*)(\.\d+)?\s*([kmg]?)(?:i?b)?", re.IGNORECASE | re.ASCII)


def byte_size(text: str) -> int:
    """Whole bytes, at least one, of `32768`, `32,768`, `32k`, `32 kB`, `32KiB` or `1.5M`. Raises ValueError with a
    sentence for anything else."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"`{text}` is no size: {FORMS}")
    digits = found[1].replace("_", "").replace(",", "") + (found[2] or "")
    size = float(digits) * UNITS[found[3].lower()] if found[2] else int(digits) * UNITS[found[3].lower()]
    if size != int(size):
        raise ValueError(f"`{text}` is {size:,} bytes: no whole number")
    if size < 1:
        raise ValueError(f"`{text}`: at least one byte")
    return int(size)
