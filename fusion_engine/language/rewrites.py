"""The `rewrite` of a rule: the nodes that stand in the place of a match, out of a few lines of text."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from fusion_engine.diagnostics import Diagnostic, GapFuseError, did_you_mean
from fusion_engine.language.expressions import CONSTANTS, convert_expression
from fusion_engine.language.file_model import RewriteSection
from fusion_engine.language.operators import most_inputs, operators, too_many_inputs
from fusion_engine.language.patterns import INFIX
from fusion_engine.language.text import RuleText, parse_lines, scalar_text
from fusion_engine.language.types import EName, Expression, NodeTemplate, Rewrite
from fusion_engine.marked_yaml import Marked, as_int, as_list, as_texts, pairs


def read_rewrites(mark: Marked | None, problems: list[Diagnostic]) -> tuple[Rewrite, ...]:
    """A text for every variant, or a list of `{for: [variants], nodes: text}`; what is wrong goes to `problems`."""
    if mark is None:
        return ()
    if mark.kind == "scalar":
        return _read(mark, mark, (), problems)
    found: list[Rewrite] = []
    for entry in (mark,) if mark.kind == "map" else as_list(mark, "rewrite", problems):
        if not RewriteSection.check(entry, "a rewrite", problems):
            continue
        nodes = entry.get("nodes")
        if nodes is not None:
            found += _read(nodes, entry, as_texts(entry.get("for"), "for", problems), problems)
    return tuple(found)


def read_weights(mark: Marked | None, problems: list[Diagnostic]) -> dict[str, int]:
    """`measure: {Pow: 3}`: what operators weigh, at least 1."""
    found: dict[str, int] = {}
    for key, value in pairs(mark, "measure", problems):
        weight = as_int(value, "a weight", problems)
        if weight is not None and weight < 1:
            problems.append(value.error("an operator weighs at least 1"))
        if "::" not in key.text and key.text not in operators():
            problems.append(key.error(f"unknown operator `{key.text}`", did_you_mean(key.text, operators())))
        found[key.text] = weight or 1
    return found


def _read(text: Marked, entry: Marked, variants: tuple[str, ...], problems: list[Diagnostic]) -> tuple[Rewrite, ...]:
    try:
        code = scalar_text(text, "a rewrite")
        lines = _Lines(code)
        for statement in parse_lines(code, "a rewrite"):
            lines.statement(statement)
    except GapFuseError as e:
        problems.extend(e.diagnostics)
        return ()
    except RecursionError:
        problems.append(text.error("the rewrite is nested too deeply"))
        return ()
    return (Rewrite(tuple(lines.nodes), tuple(lines.names), variants, entry.span),)


@dataclass(eq=False)
class _Lines:
    """Nodes in the order in which they are made; `names` maps what a line defines to the value that it is."""

    text: RuleText
    nodes: list[NodeTemplate] = field(default_factory=list)
    names: list[tuple[str, Expression]] = field(default_factory=list)
    nested: int = 0  # operators inside operators, which have numbers for names

    def statement(self, node: ast.stmt) -> None:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            raise self.text.error(node, "a line of a rewrite reads `name = Operator(...)`")
        target = node.targets[0]
        targets = [_target(self.text, t) for t in (target.elts if isinstance(target, ast.Tuple) else [target])]
        for name in targets:
            if name in dict(self.names):
                raise self.text.error(target, f"`{name}` is defined twice")
        if not isinstance(node.value, (ast.Call, ast.BinOp)):
            if len(targets) > 1:
                raise self.text.error(node.value, "only one operator's results can be given several names")
            value = self.operand(node.value)
            if value is None:
                raise self.text.error(node.value, "a result cannot be absent")
            self.names.append((targets[0], value))
            return
        made = self.node(node.value, tuple(f"{n}'" for n in targets))
        self.names += [(n, EName(o, self.text.span(node))) for n, o in zip(targets, made.outputs, strict=True)]

    def node(self, node: ast.Call | ast.BinOp, outputs: tuple[str, ...]) -> NodeTemplate:
        span = self.text.span(node)
        if isinstance(node, ast.BinOp):
            if type(node.op) not in INFIX:
                raise self.text.error(node, "not part of a rewrite", "constants are computed in `let`")
            sides = (self.operand(node.left), self.operand(node.right))
            return self._add(NodeTemplate(INFIX[type(node.op)], sides, outputs, (), span))
        op = _operator(self.text, node)
        inputs = tuple(self.operand(a.value if isinstance(a, ast.Starred) else a) for a in node.args)
        attrs = tuple(_attribute(self.text, op, word) for word in node.keywords)
        return self._add(NodeTemplate(op, inputs, outputs, attrs, span))

    def _add(self, made: NodeTemplate) -> NodeTemplate:
        self.nodes.append(made)
        return made

    def operand(self, node: ast.expr) -> Expression | None:
        if isinstance(node, (ast.Call, ast.BinOp)):
            name = f"{self.nested}'"
            self.nested += 1
            made = self.node(node, (name,))
            return EName(made.outputs[0], made.span)
        if isinstance(node, ast.Constant) and node.value is None:
            return None
        if isinstance(node, ast.Name) and node.id not in CONSTANTS and node.id in dict(self.names):
            return dict(self.names)[node.id]
        return convert_expression(self.text, node)


def _target(text: RuleText, node: ast.expr) -> str:
    if not isinstance(node, ast.Name) or not node.id[0].islower():
        raise text.error(node, "only a lower-case name can stand left of `=`")
    return node.id


def _operator(text: RuleText, node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=op) if op in operators():
            most = most_inputs(operators()[op])
            if most is not None and len(node.args) > most:
                raise text.error(node.args[most], too_many_inputs(op, most))
            return op
        case ast.Name(id=op) if op[0].islower():
            raise text.error(node, "a rewrite makes nodes", "constants are computed in `let`")
        case ast.Name(id=op):
            raise text.error(node.func, f"unknown operator `{op}`", did_you_mean(op, operators()))
        case ast.Constant(value=str() as callee) if "::" in callee:
            return callee
    raise text.error(node.func, "what is called is an operator, or a text `domain::name`")


def _attribute(text: RuleText, op: str, word: ast.keyword) -> tuple[str, Expression]:
    if word.arg is None:
        raise text.error(word, "`**` is not part of a rewrite")
    known: Mapping[str, object] | None = operators()[op].attributes if op in operators() else None
    if known is not None and word.arg not in known:
        hint = did_you_mean(word.arg, known) or f"it has: {', '.join(sorted(known)) or 'none'}"
        raise text.error(word, f"`{op}` has no attribute `{word.arg}`", hint)
    return word.arg, convert_expression(text, word.value)


def rewrite_expressions(rewrite: Rewrite) -> Iterator[Expression]:
    """Every expression of a rewrite; its own values are none."""
    for node in rewrite.nodes:
        yield from (i for i in node.inputs if i is not None and not own_value(i))
        yield from (e for _, e in node.attrs)
    yield from (e for _, e in rewrite.names if not own_value(e))


def own_value(expression: Expression) -> bool:
    """Whether it names a value that the rewrite itself makes."""
    return isinstance(expression, EName) and expression.name.endswith("'")
