"""What kernel.yaml may hold. docs/write-a-kernel.md explains; kernels/kernel.schema.json is made from here."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from fusion_engine.file_model import Scalar, Section, file_schema


class SignatureSection(Section):
    inputs: dict[str, str]
    """Operands: `const int8[K, C] | none`, `T[*S] ...`."""
    outputs: dict[str, str]
    """Results, written alike."""
    attrs: dict[str, str] | None = None
    """Attributes: `int[2] = [1, 1]`, `float = -inf`, `str`."""
    sizes: dict[str, Scalar] | None = None
    """Sizes that follow from others: `P: (H + pads[0]) // 2`; `P: given` takes it from the result."""
    where: list[Scalar] | Scalar | None = None
    """Conditions on sizes and attributes."""
    dtypes: dict[str, list[str]] | None = None
    """Variables for element types: `T: [float32, int8]`."""


class OutsideSection(Section):
    do: Literal["border", "skip", "never"]
    """border: reads a value; skip: takes no part; never: cannot happen."""
    value: Scalar | None = None
    """The border's value."""


class FrameSection(Section):
    of: str
    """The operand that the result holds, `pads` and `value` (attributes) around it."""
    fill: str
    """The kernel that makes what is around it, of `shape` and `value`, where the operand is made in place."""


class SourceSection(Section):
    generate: str
    """`file.py:function`, which makes the C text from the call's attributes."""


class TileSection(Section):
    step: Scalar | None = None
    """Every tile but the last is a multiple of it."""
    max: Scalar | None = None
    """No tile exceeds it."""


class ScratchSection(Section):
    name: str
    bytes: Scalar
    """A formula over the tile's extents."""
    per: Literal["core", "call"] | None = None
    """core (the default): each core has its own."""


class KeptSection(Section):
    type: str
    index: list[Scalar]
    over: list[str]
    """The axes that it is kept over."""


class ImplementationSection(Section):
    """One C function."""

    name: str
    """Unique in the kernel."""
    source: str | SourceSection
    """A C file of the folder, or what generates it."""
    symbol: str
    """The C function: `void SYMBOL(const void *args)`."""
    cycles: Scalar
    """The cost formula over tile extents, sizes, attributes and `cores`."""
    orders: dict[str, Scalar] | Literal["same"] | None = None
    """Storage orders by operand: `n h w c`, `any`, `same:x`, blocks `k/16 ... k%16`."""
    whole: list[str] | str | None = None
    """Axes that are never split."""
    team: str | None = None
    """The axis that the cores share, or `largest`."""
    tile: dict[str, TileSection] | None = None
    """How an axis may be split."""
    align: dict[str, int] | None = None
    """Bytes, a power of two, by operand."""
    scratch: list[ScratchSection] | None = None
    """Working memory in L1."""
    when: list[Scalar] | Scalar | None = None
    """Calls that the implementation takes."""
    accumulate: dict[str, KeptSection] | None = None
    """Partial sums that stay in L1 while a reduction is split."""
    carry: dict[str, KeptSection] | None = None
    """A state that stays in L1 from tile to tile."""
    reads_at: dict[str, Literal["first", "last"]] | None = None
    """Operands that are read only in the first or last tile of a reduction."""
    reuse: dict[str, list[str]] | None = None
    """Results that may lie on an operand: each element is read before the same one is written, by the same core."""
    pitch: list[str] | str | None = None
    """Operands whose innermost rows may lie apart in L1: the call gets the distance."""
    lines: list[str] | str | None = None
    """Those of them whose lines (rows along the next dim) may lie apart, too: the call gets that distance."""
    gather: list[str] | str | None = None
    """Operands read at places that only the data say."""
    origin: list[str] | str | None = None
    """Absolute starts that the function is told."""
    rank: int | None = None
    """Groups are flattened to exactly this many axes."""
    isa: list[str] | str | None = None
    """Instruction sets that it needs."""
    stack: int | None = None
    """Bytes of stack per core."""


class KernelFile(Section):
    """A kernel: its types, its meaning, how it may be tiled, and the C that does it."""

    kernel: str = Field(pattern="^[a-z][a-z0-9_]*$")
    """Its name."""
    summary: str | None = None
    """One sentence."""
    signature: SignatureSection
    """Operands, results, attributes."""
    semantics: str | None = None
    """`reference.py:FUNCTION`: the meaning in numpy."""
    dtypes: dict[str, list[str]] | None = None
    """Variables for element types."""
    sizes: dict[str, Scalar] | None = None
    """As in the signature."""
    where: list[Scalar] | Scalar | None = None
    """As in the signature."""
    axes: dict[str, Scalar] | None = None
    """The iteration space: axis to extent."""
    access: str | None = None
    """One line `operand[index, ...]` per operand."""
    outside: dict[str, OutsideSection] | None = None
    """What an index outside an operand means."""
    view: Literal["reshape", "transpose", "slice", "concat"] | None = None
    """No C: the result is the operand's bytes."""
    frame: FrameSection | None = None
    """The result is an operand in a frame of one value."""
    implementations: list[ImplementationSection] | None = None
    """C functions; the tiler takes the cheapest that fits."""


def kernel_schema() -> dict[str, Any]:
    """The JSON schema of one document of a kernel.yaml."""
    return file_schema(KernelFile, "gap-fuse kernel", "kernel.schema.json")
