"""The one-line types of a kernel's signature: `const int8[K, CG, R, S] | none`, `int[2] = [1, 1]`."""

from __future__ import annotations

import ast
import re

from fusion_engine.diagnostics import counted
from fusion_engine.graph import CallAttr
from fusion_engine.kernels.descriptor import AttrType, OperandType

DTYPES = (
    "float32", "float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool",
)  # fmt: skip
ATTR_DTYPES = ("int", "float", "str", "bool", *DTYPES)

_OPERAND = re.compile(
    r"(?P<const>const\s+)?(?P<dtype>\w+)\s*\[(?P<dims>[^\]]*)\]\s*(?P<variadic>\.\.\.)?\s*(?P<none>\|\s*none)?"
)
_ATTR = re.compile(r"(?P<dtype>\w+)\s*(?P<array>\[\s*(?P<length>\d*)\s*\])?\s*(=\s*(?P<default>.+))?")
_DIM = re.compile(r"\*?[A-Z][A-Za-z0-9_]*|\d+")


class SignatureError(ValueError):
    """Text that is not a type of the signature; `help` says what one looks like."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(message)
        self.help = help


def parse_operand(name: str, text: str) -> OperandType:
    """Read `const int8[K, C] | none`, `T[*S] ...`. Raises SignatureError."""
    m = _OPERAND.fullmatch(text.strip())
    if m is None:
        raise SignatureError(
            f"`{text}` is not an operand type", "write e.g. `const int8[K, C]`, `T[*S] ...` or `float32[C] | none`"
        )
    dims = tuple(d.strip() for d in m["dims"].split(",") if d.strip())
    for dim in dims:
        if not _DIM.fullmatch(dim):
            raise SignatureError(
                f"`{dim}` is not a dimension", "a dimension is a symbol `N`, a number, or a group `*S`"
            )
    return OperandType(name, m["dtype"], dims, bool(m["const"]), bool(m["none"]), bool(m["variadic"]))


def parse_attr(name: str, text: str) -> AttrType:
    """Read `int8 = 0`, `int[2] = [1, 1]`, `int[]` (any length: `length` -1), `float = -inf`. Raises SignatureError."""
    m = _ATTR.fullmatch(text.strip())
    if m is None or m["dtype"] not in ATTR_DTYPES:
        raise SignatureError(
            f"`{text}` is not an attribute type", "write e.g. `int = 1`, `int[2] = [1, 1]`, `float = -inf`, `str`"
        )
    length = None if m["array"] is None else int(m["length"] or -1)
    default = None if m["default"] is None else _default(m["dtype"], length, m["default"])
    return AttrType(name, m["dtype"], length, default, m["default"] is None)


def _default(dtype: str, length: int | None, text: str) -> CallAttr:
    hint = "a default is a number, a word in quotes, or a list of numbers"
    if dtype == "str":
        return text.strip().strip("'\"")
    try:
        value = ast.literal_eval(re.sub(r"\binf\b", "1e999", text))
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError) as e:
        raise SignatureError(f"`{text}` is not a default value", hint) from e
    items = value if isinstance(value, (list, tuple)) else [value]
    if not all(isinstance(v, (int, float)) for v in items) or (length is None) != (items is not value):
        raise SignatureError(f"`{text}` is not a default of this type", hint)
    if length not in (None, -1) and len(items) != length:
        raise SignatureError(f"the default `{text}` has {counted(len(items), 'element')}, the type {length}", hint)
    cast = float if dtype.startswith("float") else int
    converted = tuple(cast(v) for v in items)
    return converted if length is not None else converted[0]
