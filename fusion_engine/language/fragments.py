"""rules/fragments.yaml and rules/classes.yaml: named alternatives and named sets of operators."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span, did_you_mean
from fusion_engine.language.file_model import ClassesFile, FragmentsFile
from fusion_engine.language.operators import operators
from fusion_engine.language.text import RuleText, arrows_to_shifts, outside_strings, parse_lines, parse_one, scalar_text
from fusion_engine.marked_yaml import Marked, pairs


@dataclass(frozen=True, eq=False)
class FragmentLine:
    """One alternative: statements, the last of them the value; what follows `with` as a call `f(name = expr, ...)`."""

    text: RuleText
    body: list[ast.stmt]
    bindings: ast.Call | None
    with_text: RuleText | None


@dataclass(frozen=True, eq=False)
class Fragment:
    """`name(params) -> outputs:` and its alternatives in order."""

    name: str
    params: tuple[str, ...]
    outputs: tuple[str, ...]
    lines: tuple[FragmentLine, ...]
    span: Span

    @property
    def signature(self) -> str:
        results = f" -> {', '.join(self.outputs)}" if self.outputs else ""
        return f"{self.name}({', '.join(self.params)}){results}"


def read_fragments(document: Marked, problems: list[Diagnostic]) -> dict[str, Fragment]:
    """The fragments of one file; what cannot be read is added to `problems`."""
    if not FragmentsFile.check(document, "a fragments file", problems):
        return {}
    found: dict[str, Fragment] = {}
    for key, value in pairs(document.get("fragments"), "fragments", problems):
        try:
            fragment = _fragment(key, value)
        except GapFuseError as e:
            problems.extend(e.diagnostics)
            continue
        if fragment.name in found:
            problems.append(key.error(f"the fragment `{fragment.name}` is there twice"))
        found[fragment.name] = fragment
    return found


def _fragment(key: Marked, value: Marked) -> Fragment:
    name, params, outputs = _signature(key)
    if value.kind == "map" or value.is_null:
        raise GapFuseError(key.error(f"`{name}` needs a list of alternatives"))
    items = value.items if value.kind == "list" else (value,)
    lines: list[FragmentLine] = []
    problems: list[Diagnostic] = []
    for item in items:
        try:
            lines.append(_line(item))
        except GapFuseError as e:
            problems.extend(e.diagnostics)
    if problems:
        raise GapFuseError(problems)
    return Fragment(name, params, outputs, tuple(lines), key.span)


def _signature(key: Marked) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    text = RuleText(key, arrows_to_shifts(key.text))
    node: ast.expr = parse_one(text, "a fragment's head")
    outputs: list[ast.expr] = []
    match node:
        case ast.Tuple(elts=[ast.BinOp(left=head, op=ast.RShift(), right=first), *others]):
            node, outputs = head, [first, *others]
        case ast.BinOp(left=head, op=ast.RShift(), right=first):
            node, outputs = head, [first]
    match node:
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name[0].islower():
            return name, _names(text, args), _names(text, outputs)
    raise text.error(node, "a fragment's head reads `name(operand, ...) -> result, ...`")


def _names(text: RuleText, nodes: list[ast.expr]) -> tuple[str, ...]:
    for node in nodes:
        if not isinstance(node, ast.Name):
            raise text.error(node, "a name is needed here")
    return tuple(n.id for n in nodes if isinstance(n, ast.Name))


def _line(mark: Marked) -> FragmentLine:
    text = scalar_text(mark, "an alternative")
    at = _with_position(text.text)
    head = text.text if at is None else text.text[:at].rstrip()
    pattern = RuleText(mark, arrows_to_shifts(head))
    body = parse_lines(pattern, "an alternative")
    if not body:
        raise GapFuseError(mark.error("an alternative is empty"))
    if at is None:
        return FragmentLine(pattern, body, None, None)
    call, with_text = _bindings(mark, text.text, at)
    return FragmentLine(pattern, body, call, with_text)


def _with_position(text: str) -> int | None:
    free = outside_strings(text)
    for m in re.finditer(r"(?<=\s)with(?=\s)", text):
        if free[m.start()]:
            return m.start()
    return None


def _bindings(mark: Marked, text: str, at: int) -> tuple[ast.Call, RuleText]:
    """The part after `with`, read as the call `f(name = expression, ...)`; its columns are shifted back."""
    before = text[:at]
    row, col = before.count("\n"), at - (before.rfind("\n") + 1)
    rest = text[at + 4 :].rstrip()
    code = RuleText(mark, f"f({rest})", row, col + 4, shift=2)
    node = parse_one(code, "after `with`")
    if not isinstance(node, ast.Call) or node.args:
        raise code.error(node, "`with` binds name = expression, ...")
    return node, code


def read_classes(document: Marked, problems: list[Diagnostic]) -> dict[str, tuple[str, ...]]:
    """The operator classes of one file; a lower-case entry takes in an earlier class."""
    if not ClassesFile.check(document, "a classes file", problems):
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for key, value in pairs(document.get("classes"), "classes", problems):
        members: list[str] = []
        for item in value.items if value.kind == "list" else (value,):
            members.extend(_member(item, found, problems))
        found[key.text] = tuple(dict.fromkeys(members))
    return found


def _member(item: Marked, found: Mapping[str, tuple[str, ...]], problems: list[Diagnostic]) -> tuple[str, ...]:
    name = item.text.strip()
    if item.kind == "scalar" and name in found:
        return found[name]
    if item.kind == "scalar" and (name in operators() or "::" in name):
        return (name,)
    problems.append(item.error(f"unknown operator `{name}`", did_you_mean(name, [*operators(), *found])))
    return ()
