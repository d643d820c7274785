"""Call trees of generated kernels, `mul(sigmoid(x0), x0)` over operands x0, x1, ... and numbers: text in, C out."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from fusion_engine.diagnostics import counted


class ExpressionError(ValueError):
    """The text is no tree of the vocabulary; the message says where it leaves it."""


@dataclass(frozen=True, slots=True)
class Operand:
    index: int


@dataclass(frozen=True, slots=True)
class Constant:
    value: float


@dataclass(frozen=True, slots=True)
class Apply:
    function: str
    args: tuple[Tree, ...]


Tree = Operand | Constant | Apply


@dataclass(frozen=True, slots=True)
class Function:
    """`c` is a C expression over `{0}, {1}, ...`, simple names each; `arity` -1 folds any number of arguments in
    pairs."""

    arity: int
    numpy: Callable[..., Any]
    c: str


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The functions by name, what messages call them and numbers, and the value of a number's node (None: it is
    none)."""

    functions: Mapping[str, Function]
    kind: str
    numbers: str
    number: Callable[[ast.expr], float | None]


def parse(text: str, words: Vocabulary) -> Tree:
    """Read a tree; nothing is executed. Raises ExpressionError."""
    try:
        return _read(ast.parse(text.strip(), mode="eval").body, words)
    except (SyntaxError, RecursionError, MemoryError) as e:
        raise ExpressionError(f"`{text}` is not an expression") from e


def _read(node: ast.expr, words: Vocabulary) -> Tree:
    if (value := words.number(node)) is not None:
        return Constant(value)
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return Apply("neg", (_read(operand, words),))
        case ast.Name(id=name) if name[:1] == "x" and name[1:].isdigit():
            return Operand(int(name[1:]))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _call(_known(name, words), [_read(a, words) for a in args], words)
    what = f"neither an operand x0, x1, ..., nor {words.numbers}, nor a function call"
    raise ExpressionError(f"`{ast.unparse(node)}` is {what}")


def _known(name: str, words: Vocabulary) -> str:
    name = name.rstrip("_")  # `not_`, `and_`, `or_`: the plain words are Python's
    if name not in words.functions:
        raise ExpressionError(f"no {words.kind} function `{name}`: one of {', '.join(sorted(words.functions))}")
    return name


def _call(name: str, args: list[Tree], words: Vocabulary) -> Tree:
    arity = words.functions[name].arity
    if (arity >= 0 and len(args) != arity) or not args:
        wanted = counted(arity, "argument") if arity >= 0 else "at least 1 argument"
        raise ExpressionError(f"`{name}` takes {wanted}, not {len(args)}")
    return reduce(lambda a, b: Apply(name, (a, b)), args) if arity < 0 else Apply(name, tuple(args))


@dataclass(frozen=True, slots=True)
class Spelling:
    """How C writes the steps of a tree: their type, operand `{0}`, a number, and what stands around each function."""

    c_type: str
    operand: str
    literal: Callable[[float], str]
    step: str = "{}"


def statements(tree: Tree, functions: Mapping[str, Function], variadic: int, c: Spelling) -> tuple[list[str], str]:
    """One assignment per node (equal subtrees share theirs), and the name or literal of the result. Raises
    ExpressionError where it reads more than `variadic` operands."""
    named: dict[Tree, str] = {}
    lines: list[str] = []

    def visit(node: Tree) -> str:
        if isinstance(node, Constant):
            return c.literal(node.value)
        if node not in named:
            text = text_of(node)
            named[node] = f"v{len(named)}"
            lines.append(f"const {c.c_type} {named[node]} = {text};")
        return named[node]

    def text_of(node: Operand | Apply) -> str:
        if isinstance(node, Apply):
            return c.step.format(functions[node.function].c.format(*map(visit, node.args)))
        if node.index >= variadic:
            has = counted(variadic, "operand")
            raise ExpressionError(f"the expression reads x{node.index}, but the call has {has}")
        return c.operand.format(node.index)

    return lines, visit(tree)
