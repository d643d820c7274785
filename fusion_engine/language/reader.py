"""What a name means while one pattern text is read; literals, and the keywords of an operator."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count

from fusion_engine.diagnostics import did_you_mean
from fusion_engine.language.expressions import CONSTANTS
from fusion_engine.language.fragments import Fragment
from fusion_engine.language.operators import most_inputs, operators
from fusion_engine.language.text import RuleText
from fusion_engine.language.trees import Sizes
from fusion_engine.language.types import ANY, AttrPattern, Capture, Pattern

LiteralValue = int | float | str | tuple[int, ...] | tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Reader:
    """What a name means while one text is read.

    `defined` maps a name that a statement or a fragment's operand gave to its pattern; `renamed` maps a fragment's
    names to the rule's; `prefix` makes a fragment's own names unlike every other.
    """

    text: RuleText
    fragments: Mapping[str, Fragment]
    classes: Mapping[str, tuple[str, ...]]
    defined: Mapping[str, Pattern] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""
    stack: tuple[str, ...] = ()
    serial: count[int] = field(default_factory=count)
    sizes: Sizes = field(default_factory=Sizes)

    def name(self, name: str) -> str:
        """The rule's name for a name of this text."""
        return self.renamed.get(name, self.prefix + name)

    def captured(self, name: str) -> str:
        """The same, where each `_` is a name of its own, which nothing else can have."""
        return f"{next(self.serial)}.{ANY}" if name == ANY else self.name(name)


def check_name(reader: Reader, node: ast.Name) -> None:
    if node.id in CONSTANTS or not (node.id[0].islower() or node.id[0] == "_"):
        raise reader.text.error(node, f"`{node.id}` cannot name a value", "values are named in lower case")
    if node.id in reader.fragments:
        raise reader.text.error(node, f"`{node.id}` is a fragment's name")


# ---- literals ----


def number_or_list(reader: Reader, node: ast.expr) -> float | int | bool | tuple[float, ...] | tuple[int, ...]:
    value = literal(reader.text, node)
    if isinstance(value, str):
        raise reader.text.error(node, "a text is not a tensor", 'a text called, "domain::name"(x), matches a function')
    return value


def literal(text: RuleText, node: ast.expr) -> LiteralValue:
    """A number, a text or a list of numbers. Raises GapFuseError."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() as value):
            return value
        case ast.Name(id="inf" | "nan" as name):
            return float(name)
        case ast.Name(id="true" | "false" as name):
            return name == "true"
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            negated = literal(text, operand)
            if isinstance(negated, (int, float)):
                return -negated
        case ast.List(elts=elts):
            items = [literal(text, e) for e in elts]
            if all(isinstance(i, int) for i in items):
                return tuple(i for i in items if isinstance(i, int))
            if all(isinstance(i, (int, float)) for i in items):
                return tuple(float(i) for i in items if isinstance(i, (int, float)))
    raise text.error(node, "not part of the pattern language", "docs/rule-language.md lists what is")


# ---- keywords ----


def keywords(
    reader: Reader, node: ast.Call, op: str | None, inputs: list[Pattern]
) -> tuple[tuple[AttrPattern, ...], tuple[tuple[int, float], ...]]:
    """Keywords that name attributes, and those that name the next optional input with what its absence means."""
    schema = operators()[op] if op is not None else None
    attrs: list[AttrPattern] = []
    defaults: list[tuple[int, float]] = []
    for word in node.keywords:
        if word.arg is None:
            raise reader.text.error(word, "`**` is not part of the pattern language")
        if schema is None or word.arg in schema.attributes:
            attrs.append(_attribute(reader, word, word.arg))
            continue
        defaults.append((len(inputs), _meaning(reader, word, word.arg, op or "", len(inputs))))
        inputs.append(Capture(reader.name(word.arg), reader.text.span(word)))
    return tuple(attrs), tuple(defaults)


def _attribute(reader: Reader, word: ast.keyword, name: str) -> AttrPattern:
    span = reader.text.span(word)
    if isinstance(word.value, ast.Name) and word.value.id not in CONSTANTS:
        return AttrPattern(name, None, reader.captured(word.value.id), span)
    return AttrPattern(name, literal(reader.text, word.value), None, span)


def _meaning(reader: Reader, word: ast.keyword, name: str, op: str, position: int) -> float:
    known = operators()[op]
    hint = (
        did_you_mean(name, known.attributes) or f"attributes of {op}: {', '.join(sorted(known.attributes)) or 'none'}"
    )
    most = most_inputs(known)
    if most is not None and position >= most:
        raise reader.text.error(word, f"`{op}` has no attribute `{name}`", hint)
    if isinstance(word.value, ast.Name) and word.value.id not in CONSTANTS:
        raise reader.text.error(word, f"`{op}` has no attribute `{name}`", hint)
    value = literal(reader.text, word.value)
    if not isinstance(value, (int, float)):
        raise reader.text.error(
            word, f"what an absent `{name}` means must be a number, since `{op}` has no such attribute", hint
        )
    return float(value)
