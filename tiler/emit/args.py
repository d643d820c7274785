"""The C argument struct of an implementation, generated from its descriptor (ARCHITECTURE.md, "The C function")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.expr import Expr, names
from fusion_engine.kernels.descriptor import Implementation, Kernel, OperandType

MemberKind = Literal[
    "pointer",  # L1 address of operand `of`
    "extent",  # of dim `dim` of the L1 tile of `of`
    "before",  # rows of `dim` missing before the tile, where the map runs outside the tensor
    "after",
    "rows",  # elements from row to row of operand `of` in L1
    "lines",  # elements from line to line of rows of operand `of` in L1
    "strides",  # element strides in L1 of operand `of` along the axes of its group
    "axis",  # extent in this tile of axis `of`
    "attr",  # value of attribute `of`
    "axis_at",  # absolute start of axis `of`
    "dim_at",  # absolute start of `dim` of the L1 box of `of`
    "accumulator",
    "first",
    "last",
    "scratch",  # address of scratch `of`
    "pitch",  # its bytes per core
    "itemsize",  # bytes per element of the dtype variable `of`
]


@dataclass(frozen=True, slots=True)
class ArgMember:
    """One member of the struct. `length` is the array length, None for scalars."""

    name: str
    kind: MemberKind
    ctype: str
    of: str
    dim: str = ""
    length: int | None = None

    @property
    def declaration(self) -> str:
        space = "" if self.ctype.endswith("*") else " "
        return f"{self.ctype}{space}{self.name}" + (f"[{self.length}]" if self.length is not None else "") + ";"


_C_TYPES: Mapping[str, str] = {
    "bool": "uint8_t",
    "float": "float",
    "float32": "float",
    "float16": "uint16_t",  # the bits: C99 has no such type
    "float64": "double",
    "int": "int32_t",
} | {f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}


def c_type(dtype: str) -> str:
    """The C element type of a numpy dtype name. Raises GapFuseError for one that C99 lacks."""
    if dtype not in _C_TYPES:
        raise GapFuseError(f"no C type for elements of dtype `{dtype}`")
    return _C_TYPES[dtype]


def operand_names(kernel: Kernel, variadic: int) -> tuple[tuple[str, OperandType], ...]:
    """Names in the struct and in calls, inputs then outputs: a variadic `x` becomes x0, x1, ..."""

    def expand(o: OperandType) -> list[tuple[str, OperandType]]:
        return [(f"{o.name}{i}", o) for i in range(variadic)] if o.variadic else [(o.name, o)]

    return tuple(pair for o in kernel.operands for pair in expand(o))


def c_symbol(implementation: Implementation, suffix: str = "") -> str:
    """The C function's name; `suffix` tells generated functions of different attributes apart."""
    return f"{implementation.symbol}{suffix}"


def args_members(kernel: Kernel, implementation: Implementation, variadic: int = 0) -> tuple[ArgMember, ...]:
    """Every member of the struct in order. `variadic` is the number of operands the variadic input has in this call.

    Raises GapFuseError if an any-rank kernel's implementation states no `rank`.
    """
    return (
        *_operands(kernel, implementation, variadic),
        *_axes(kernel, implementation),
        *_attributes(kernel),
        *_origins(implementation),
        *_accumulator(implementation),
        *_scratch(implementation),
        *(ArgMember(f"{t}_bytes", "itemsize", "int32_t", t) for t in sorted(kernel.dtypes)),
    )


def args_header(kernel: Kernel, implementation: Implementation, variadic: int = 0, suffix: str = "") -> str:
    """The text of `SYMBOL_args.h`: the struct SYMBOL_args and the function's declaration."""
    symbol = c_symbol(implementation, suffix)
    guard = f"{symbol.upper()}_ARGS_H"
    members = "\n".join(f"  {m.declaration}" for m in args_members(kernel, implementation, variadic))
    return (
        f"/* Generated from kernels/{kernel.folder.name}/kernel.yaml: "
        f"{kernel.name}, {symbol}. */\n"
        f"#ifndef {guard}\n#define {guard}\n"
        '#include "gf_kernel.h"\n\n'
        f"typedef struct {{\n{members}\n}} {symbol}_args;\n\n"
        f"void {symbol}(const void *args);\n\n"
        "#endif\n"
    )


def storage_dims(operand: OperandType, implementation: Implementation) -> tuple[str, ...]:
    """Named dims of the operand's L1 tile, outermost first, without groups and literal extents.

    A blocked dim ("k/16 ... k%16") counts once, as k, where its blocks stand.
    """
    order = implementation.orders.get(operand.name)
    if not isinstance(order, tuple):
        return tuple(d.lower() for d in operand.dims if _is_named(d))
    bases = [d.split("/")[0] for d in order if "%" not in d]
    return tuple(d for d in bases if _is_named(d))


def _is_named(dim: str) -> bool:
    return not dim.startswith("*") and not dim.isdigit()


def _operands(kernel: Kernel, implementation: Implementation, variadic: int) -> Iterator[ArgMember]:
    for name, operand in operand_names(kernel, variadic):
        yield from _operand(name, operand, kernel, implementation)


def _operand(name: str, operand: OperandType, kernel: Kernel, implementation: Implementation) -> Iterator[ArgMember]:
    element = "void" if operand.dtype in kernel.dtypes else c_type(operand.dtype)
    const = "" if operand in kernel.outputs else "const "
    yield ArgMember(name, "pointer", f"{const}{element} *", name)
    dims = storage_dims(operand, implementation)
    for d in dims:
        yield ArgMember(f"{name}_{d}", "extent", "int32_t", name, d)
    for d in _border_dims(operand, kernel, dims):
        yield ArgMember(f"{name}_{d}_before", "before", "int32_t", name, d)
        yield ArgMember(f"{name}_{d}_after", "after", "int32_t", name, d)
    if operand.name in implementation.pitch:
        yield ArgMember(f"{name}_pitch", "rows", "int32_t", name)
    if operand.name in implementation.lines:
        yield ArgMember(f"{name}_line", "lines", "int32_t", name)
    if (count := _stride_count(operand, implementation)) is not None:
        yield ArgMember(f"{name}_s", "strides", "int32_t", name, length=count)


def _border_dims(operand: OperandType, kernel: Kernel, dims: tuple[str, ...]) -> Iterator[str]:
    outside = kernel.outside.get(operand.name)
    if outside is None or outside.do == "never":
        return
    attrs = {a.name for a in kernel.attrs}
    index = access_of(kernel, operand.name)
    for d in dims:
        expr = index[[x.lower() for x in operand.dims].index(d)]
        if expr is not None and names(expr) & attrs:
            yield d


def access_of(kernel: Kernel, operand: str) -> tuple[Expr | None, ...]:
    """The index map of an operand by its name in the signature. Raises GapFuseError if the kernel has none."""
    for access in kernel.access:
        if access.operand == operand:
            return access.index
    raise GapFuseError(f"kernel `{kernel.name}`: operand `{operand}` has no access map")


def _stride_count(operand: OperandType, implementation: Implementation) -> int | None:
    if any(d.startswith("*") for d in operand.dims):
        return _rank(implementation)
    if isinstance(implementation.orders.get(operand.name), str):
        return len(operand.dims)
    return None


def _rank(implementation: Implementation) -> int:
    if implementation.rank is None:
        raise GapFuseError(f"implementation `{implementation.name}` of an any-rank kernel states no `rank`")
    return implementation.rank


def _axes(kernel: Kernel, implementation: Implementation) -> Iterator[ArgMember]:
    for axis, extent in kernel.axes:
        length = _rank(implementation) if extent.startswith("*") else None
        yield ArgMember(axis, "axis", "int32_t", axis, length=length)


def _attributes(kernel: Kernel) -> Iterator[ArgMember]:
    for a in kernel.attrs:
        if a.dtype != "str" and a.length != -1:
            yield ArgMember(a.name, "attr", c_type(a.dtype), a.name, length=a.length)


def _origins(implementation: Implementation) -> Iterator[ArgMember]:
    for entry in implementation.origin:
        operand, _, dim = entry.partition(".")
        if dim:
            yield ArgMember(f"{operand}_{dim}_at", "dim_at", "int32_t", operand, dim)
        else:
            yield ArgMember(f"{entry}_at", "axis_at", "int32_t", entry)


def _accumulator(implementation: Implementation) -> Iterator[ArgMember]:
    if implementation.accumulate is None:
        return
    name = implementation.accumulate.name
    yield ArgMember(name, "accumulator", f"{c_type(implementation.accumulate.dtype)} *", name)
    yield ArgMember("first", "first", "int32_t", "first")
    yield ArgMember("last", "last", "int32_t", "last")


def _scratch(implementation: Implementation) -> Iterator[ArgMember]:
    for s in implementation.scratch:
        yield ArgMember(s.name, "scratch", "uint8_t *", s.name)
        yield ArgMember(f"{s.name}_pitch", "pitch", "int32_t", s.name)
