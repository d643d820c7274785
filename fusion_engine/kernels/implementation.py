"""Reads one entry of `implementations:`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, cast

from fusion_engine.expr import Num
from fusion_engine.kernels.descriptor import Accumulate, Implementation, OperandType, Scratch, TileRule
from fusion_engine.kernels.fields import read_conditions, read_expression
from fusion_engine.kernels.file_model import (
    ImplementationSection,
    KeptSection,
    ScratchSection,
    SourceSection,
    TileSection,
)
from fusion_engine.marked_yaml import (
    Marked,
    Problems,
    as_choice,
    as_int,
    as_list,
    as_text,
    as_texts,
    pairs,
)

ALIGNED = 16  # bytes: where the tiler lets every buffer begin


def read_implementation(m: Marked, operands: Sequence[OperandType], problems: Problems) -> Implementation | None:
    """One implementation; None where it has problems (which are added)."""
    before = len(problems)
    if not ImplementationSection.check(m, "an implementation", problems):
        return None
    source, generate = _source(m.get("source"), problems)
    cycles = read_expression(m.get("cycles"), "cycles", problems)
    symbol = as_text(m.get("symbol"), "the symbol", problems) or ""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", symbol):
        problems.append((m.get("symbol") or m).error(f"`{symbol}` is not a C identifier"))
    implementation = Implementation(
        name=as_text(m.get("name"), "the implementation's name", problems) or "",
        source=source,
        symbol=symbol,
        cycles=cycles or Num(0),
        orders=read_orders(m.get("orders"), operands, problems),
        whole=as_texts(m.get("whole"), "whole", problems),
        team=as_text(m.get("team"), "team", problems),
        tile=_tile(m.get("tile"), problems),
        align=_align(m.get("align"), problems),
        scratch=_scratch(m.get("scratch"), problems),
        when=read_conditions(m.get("when"), "when", problems),
        accumulate=_kept(m, problems),
        reads_at=_reads_at(m.get("reads_at"), problems),
        reuse={k.text: as_texts(v, "reuse", problems) for k, v in pairs(m.get("reuse"), "reuse", problems)},
        gather=as_texts(m.get("gather"), "gather", problems),
        pitch=as_texts(m.get("pitch"), "pitch", problems),
        lines=as_texts(m.get("lines"), "lines", problems),
        origin=as_texts(m.get("origin"), "origin", problems),
        rank=as_int(m.get("rank"), "rank", problems),
        isa=as_texts(m.get("isa"), "isa", problems),
        generate=generate,
        stack=as_int(m.get("stack"), "stack", problems) or 0,
    )
    return implementation if len(problems) == before else None


def _source(m: Marked | None, problems: Problems) -> tuple[str | None, tuple[str, str] | None]:
    if m is None or m.kind == "scalar":
        return as_text(m, "source", problems), None
    if not SourceSection.check(m, "source", problems):
        return None, None
    text = as_text(m.get("generate"), "generate", problems) or ""
    file, _, function = text.partition(":")
    if not (file.endswith(".py") and function.isidentifier()):
        problems.append(m.error(f"`{text}` is no function of a file", "write `generate: file.py:function`"))
        return None, None
    return None, (file, function)


# ---- storage orders ----


def read_orders(
    m: Marked | None, operands: Sequence[OperandType], problems: Problems
) -> Mapping[str, tuple[str, ...] | str]:
    """`orders: same` (every activation as the first), or a map operand -> `any`, `same:x`, or dims outermost first."""
    if m is None or m.is_null:
        return {}
    if m.kind == "scalar" and m.text.strip() == "same":
        names = [o.name for o in operands if not o.const]
        return {name: "any" if i == 0 else f"same:{names[0]}" for i, name in enumerate(names)}
    if m.kind == "scalar":
        help_ = "or a map by operand: `{x: any, y: same:x}`"
        problems.append(m.error(f"`{m.text}` is no order of all operands; that is `same`", help_))
        return {}
    by_name = {o.name: o for o in operands}
    result: dict[str, tuple[str, ...] | str] = {}
    for key, value in pairs(m, "orders", problems):
        text = as_text(value, "an order", problems)
        operand = by_name.get(key.text)
        if operand is None:
            problems.append(key.error(f"`{key.text}` is no operand", "operands: " + ", ".join(by_name)))
        elif text is not None:
            order = _order(text, operand, by_name, value, problems)
            if order is not None:
                result[key.text] = order
    return result


def _order(
    text: str, operand: OperandType, known: Mapping[str, OperandType], m: Marked, problems: Problems
) -> tuple[str, ...] | str | None:
    if text == "any":
        return "any"
    if text.startswith("same:"):
        if text[5:] in known and text[5:] != operand.name:
            return text
        problems.append(m.error(f"`{text[5:]}` is no other operand", "write `same:x` with an operand of the signature"))
        return None
    return _dims_order(tuple(text.split()), operand, m, problems)


def dim_names(operand: OperandType) -> tuple[str, ...]:
    """The names that orders use for the operand's dims: lower-case symbols, `*s` for a group, a literal's number."""
    return tuple(d.lower() for d in operand.dims)


def _dims_order(tokens: tuple[str, ...], operand: OperandType, m: Marked, problems: Problems) -> tuple[str, ...] | None:
    dims = dim_names(operand)
    groups = [d for d in dims if d.startswith("*")]
    tokens = tuple(groups[0] if t == "*" and len(groups) == 1 else t for t in tokens)
    bases = _base_dims(tokens)
    unit = [d for d in dims if d == "1" and d not in bases]
    tokens, bases = (*unit, *tokens), [*unit, *bases]
    if sorted(bases) == sorted(dims):
        blocked = any("/" in t or "%" in t for t in tokens)
        if blocked and not operand.const:
            problems.append(m.error(f"`{operand.name}` is no constant: its order cannot have blocks"))
            return None
        return tokens
    help = f"the dims of `{operand.name}` are: {' '.join(dims)} (each once, or as a pair `k/16 ... k%16`)"
    problems.append(m.error(f"`{' '.join(tokens)}` is not an order of `{operand.name}`", help))
    return None


def _base_dims(tokens: tuple[str, ...]) -> list[str]:
    """Dims named, a pair `k/16` with a later `k%16` counting once; any other block stays text and matches no dim."""
    result: list[str] = []
    for i, token in enumerate(tokens):
        outer = re.fullmatch(r"(\w+)/(\d+)", token)
        inner = re.fullmatch(r"(\w+)%(\d+)", token)
        if outer and f"{outer[1]}%{outer[2]}" in tokens[i + 1 :]:
            result.append(outer[1])
        elif not (inner and f"{inner[1]}/{inner[2]}" in tokens[:i]):
            result.append(token)
    return result


# ---- smaller fields ----


def _tile(m: Marked | None, problems: Problems) -> Mapping[str, TileRule] | None:
    if m is None:
        return None
    result = {}
    for key, value in pairs(m, "tile", problems):
        if TileSection.check(value, "a tile rule", problems):
            step = read_expression(value.get("step"), "step", problems)
            result[key.text] = TileRule(step, read_expression(value.get("max"), "max", problems))
    return result


def _align(m: Marked | None, problems: Problems) -> Mapping[str, int] | None:
    if m is None:
        return None
    values = {k.text: as_int(v, "an alignment", problems) for k, v in pairs(m, "align", problems)}
    if any(v is not None and (v < 1 or v & (v - 1)) for v in values.values()):
        problems.append(m.error("an alignment must be a power of two, in bytes"))
    if any(v is not None and v > ALIGNED for v in values.values()):
        problems.append(m.error(f"an alignment above {ALIGNED} is not supported yet: buffers lie on {ALIGNED} bytes"))
    return {k: v for k, v in values.items() if v is not None}


def _scratch(m: Marked | None, problems: Problems) -> tuple[Scratch, ...]:
    result = []
    for item in as_list(m, "scratch", problems):
        if not ScratchSection.check(item, "a scratch buffer", problems):
            continue
        size = read_expression(item.get("bytes"), "bytes", problems)
        per = as_choice(item.get("per"), "per", ("core", "call"), problems) or "core"
        name = as_text(item.get("name"), "a scratch buffer's name", problems)
        if size is not None and name is not None:
            result.append(Scratch(name, size, cast("Literal['core', 'call']", per)))
    return tuple(result)


def _kept(m: Marked, problems: Problems) -> Accumulate | None:
    """`accumulate` or `carry`: what stays in L1 from tile to tile."""
    carry = m.get("carry")
    if carry is not None and m.get("accumulate") is not None:
        problems.append(carry.error("an implementation keeps one thing: `accumulate` or `carry`, not both"))
    return _kept_as("accumulate", m.get("accumulate"), problems) or _kept_as("carry", carry, problems)


def _kept_as(what: str, m: Marked | None, problems: Problems) -> Accumulate | None:
    for key, value in pairs(m, what, problems):
        if not KeptSection.check(value, what, problems):
            return None
        index = [read_expression(i, "an index", problems) for i in as_list(value.get("index"), "index", problems)]
        dtype = as_text(value.get("type"), "type", problems) or "int32"
        over = as_texts(value.get("over"), "over", problems)
        return Accumulate(key.text, dtype, tuple(i for i in index if i is not None), over, what == "carry")
    return None


def _reads_at(m: Marked | None, problems: Problems) -> Mapping[str, Literal["first", "last"]] | None:
    if m is None:
        return None
    result: dict[str, Literal["first", "last"]] = {}
    for key, value in pairs(m, "reads_at", problems):
        when = as_choice(value, "reads_at", ("first", "last"), problems)
        if when is not None:
            result[key.text] = cast("Literal['first', 'last']", when)
    return result
