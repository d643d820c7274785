"""The types of captures (`const real[K] | none in 0.01..10`) and of storages (`int8 symmetric axis 0`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from fusion_engine.diagnostics import GapFuseError, did_you_mean
from fusion_engine.expr import ExprError, names, parse_expr
from fusion_engine.language.text import scalar_text
from fusion_engine.language.types import CaptureType, StoredType
from fusion_engine.marked_yaml import Marked

FAMILIES: Mapping[str, frozenset[str]] = {
    "real": frozenset(("float16", "float32")),
    "int": frozenset(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")),
    "bool": frozenset(("bool",)),
}
ELEMENTS = (*FAMILIES, "any", "float16", "float32", "float64", *sorted(FAMILIES["int"]))
STORAGES = ("int8", "int16", "int32", "float")

_TYPE = re.compile(
    r"^(?P<const>const\s+)?(?P<dtype>\w+)\s*(?:\[(?P<dims>[^\]]*)\])?"
    r"(?P<optional>\s*\|\s*none)?(?:\s+in\s+(?P<low>\S+?)\.\.(?P<high>\S+))?$"
)
_STORED = re.compile(r"^(?P<dtype>\w+)(?P<symmetric>\s+symmetric)?(?:\s+axis\s+(?P<axis>-?\d+))?$")


def read_capture_type(mark: Marked) -> CaptureType:
    """One type of `given`. Raises GapFuseError."""
    text = scalar_text(mark, "a capture's type").text.strip()
    m = _TYPE.match(text)
    if m is None:
        hint = "it reads `const real[N, C] | none in 0.01..10`; only the element type must be there"
        raise GapFuseError(mark.error(f"`{text}` is not a capture's type", hint))
    _check_dtype(mark, m["dtype"])
    dims = None if m["dims"] is None else tuple(_dims(mark, m["dims"]))
    low, high = _bound(mark, m["low"]), _bound(mark, m["high"])
    return CaptureType(m["dtype"], dims, m["const"] is not None, m["optional"] is not None, low, high, mark.span)


def _check_dtype(mark: Marked, dtype: str) -> None:
    if dtype in ELEMENTS:
        return
    hint = did_you_mean(dtype, ELEMENTS) or "one of: " + ", ".join(ELEMENTS)
    raise GapFuseError(mark.error(f"unknown element type `{dtype}`", hint))


def elements(dtype: str) -> frozenset[str] | None:
    """The element types that a capture of this type may have; None: every one."""
    return None if dtype == "any" else FAMILIES.get(dtype, frozenset((dtype,)))


def _dims(mark: Marked, text: str) -> Iterator[str]:
    for part in (p.strip() for p in text.split(",") if text.strip()):
        if re.fullmatch(r"\*[A-Z]\w*", part):
            yield part
            continue
        try:
            expr = parse_expr(part.replace(" / ", " // "))
        except ExprError as e:
            raise GapFuseError(mark.error(f"`{part}` is not a size: {e.message}")) from e
        if not part.isdigit() and not names(expr):
            raise GapFuseError(mark.error(f"`{part}` is not a size"))
        yield part


def dim_names(dim: str) -> frozenset[str]:
    """The symbols of one dim of a capture's type."""
    return frozenset((dim[1:],)) if dim.startswith("*") else names(parse_expr(dim.replace(" / ", " // ")))


def _bound(mark: Marked, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError as e:
        raise GapFuseError(mark.error(f"`{text}` is not a number", "a drawing range reads `in 0.01..10`")) from e


def read_stored_type(mark: Marked) -> StoredType:
    """One storage of `stored`. Raises GapFuseError."""
    text = scalar_text(mark, "a storage").text.strip()
    m = _STORED.match(text)
    if m is None:
        raise GapFuseError(mark.error(f"`{text}` is not a storage", "it reads `int8 symmetric axis 0`"))
    if m["dtype"] not in STORAGES:
        hint = did_you_mean(m["dtype"], STORAGES) or "one of: " + ", ".join(STORAGES)
        raise GapFuseError(mark.error(f"unknown storage `{m['dtype']}`", hint))
    axis = None if m["axis"] is None else int(m["axis"])
    return StoredType(m["dtype"], m["symmetric"] is not None, axis, mark.span)
