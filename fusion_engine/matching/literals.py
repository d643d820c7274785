"""When a constant or an attribute of the graph equals what a pattern writes."""

from __future__ import annotations

import numpy as np

ULPS = 4
Number = int | float | bool
LiteralValue = Number | str | tuple[int, ...] | tuple[float, ...] | None


def constant_equals(const: np.ndarray, literal: Number | tuple[int, ...] | tuple[float, ...], rank: int | None) -> bool:
    """A constant of rank 0 or 1 against a literal, within 4 ulp of the literal rounded to the constant's dtype.

    `rank` is given where the constant holds axes: negative ones of the literal then count from it.
    """
    wanted = literal if isinstance(literal, tuple) else (literal,)
    if const.ndim > 1 or const.size != len(wanted):
        return False
    found = const.reshape(-1)
    return all(_element(f, w, rank) for f, w in zip(found, wanted, strict=True))


def _element(found: np.generic, wanted: Number, rank: int | None) -> bool:
    if found.dtype.kind in "iub":
        return int(found) == wanted or (rank is not None and int(found) == wanted + rank and wanted < 0)
    return close(found, wanted)


def close(found: np.generic | float, wanted: Number) -> bool:
    """Within 4 ulp of `wanted` rounded to the dtype of `found` (float32 for Python numbers)."""
    dtype = found.dtype if isinstance(found, np.generic) and found.dtype.kind == "f" else np.dtype(np.float32)
    with np.errstate(all="ignore"):
        want, have = np.asarray(wanted, dtype=dtype), np.asarray(found, dtype=dtype)
        if want == have:
            return True
        if not (np.isfinite(want) and np.isfinite(have)):
            return bool(np.isnan(want) and np.isnan(have))
        return bool(abs(float(have) - float(want)) <= ULPS * float(np.spacing(np.abs(want))))


def attribute_equals(found: object, wanted: LiteralValue) -> bool:
    """An attribute against a literal: integers and texts exactly, floats within 4 ulp, lists element by element."""
    if isinstance(found, bytes):
        found = found.decode("utf-8", "replace")
    if found is None or wanted is None or isinstance(wanted, str) or isinstance(found, str):
        return found == wanted
    if isinstance(found, np.ndarray):
        return isinstance(wanted, (int, float, tuple)) and constant_equals(found, wanted, None)
    if isinstance(found, (tuple, list)) or isinstance(wanted, tuple):
        return _lists_equal(found, wanted)
    if isinstance(found, int) and isinstance(wanted, int):
        return found == wanted
    return isinstance(found, (int, float, np.generic)) and close(found, wanted)


def _lists_equal(found: object, wanted: LiteralValue) -> bool:
    if not isinstance(found, (tuple, list)) or not isinstance(wanted, tuple) or len(found) != len(wanted):
        return False
    return all(attribute_equals(f, w) for f, w in zip(found, wanted, strict=True))


def plain(value: object) -> object:
    """An attribute as a rule sees it: text for bytes, flat tuples for lists and tensors."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.ndarray):
        return tuple(value.reshape(-1).tolist())
    return tuple(value) if isinstance(value, list) else value
