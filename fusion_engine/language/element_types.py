"""Element types of a rule against those of its kernels: a call whose operand can never have the kernel's type."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fusion_engine.diagnostics import Diagnostic, Span
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language.captures import elements
from fusion_engine.language.printing import capture_type_text
from fusion_engine.language.types import EApply, Emit, EmitEntry, EName, Expression, Rule

At = Callable[[Span, str, str | None], Diagnostic]
Types = frozenset[str] | None  # None: any


def check_element_types(rule: Rule, entry: EmitEntry, call: Emit, kernel: Kernel, at: At) -> Iterator[Diagnostic]:
    """Every operand and result that `given` or `stored` types otherwise than the kernel, whatever the graph.

    Constants are left out: they are cast when compiling. A type variable of the kernel stands for one type throughout.
    """
    own = [o for o in kernel.operands if not o.const]
    bound: dict[str, tuple[frozenset[str], str]] = {}  # a type variable: what is left of it, and who last narrowed it
    for name, span, types, told in _typed(rule, entry, call, kernel):
        o = next((o for o in own if o.name == name), None)
        if o is None:
            continue
        takes, by = bound.get(o.dtype) or (frozenset(kernel.dtypes.get(o.dtype, (o.dtype,))), "")
        if types & takes:
            bound[o.dtype] = (types & takes, f", as `{name}` is")
            continue
        wanted = " or ".join(sorted(takes))
        message = f"{told}, but kernel `{kernel.name}` takes {wanted} as `{name}`{by}: this can never fire"
        yield at(span, message, f"name a kernel that takes {' or '.join(sorted(types))}, or change the type")


def _typed(rule: Rule, entry: EmitEntry, call: Emit, kernel: Kernel) -> Iterator[tuple[str, Span, frozenset[str], str]]:
    """The kernel's name of an operand or result, where it is written, its types in the graph and who says so."""
    for name, expression in call.args:
        types, told = _types(rule, entry, expression)
        if types is not None:
            yield name, expression.span, types, told
    results = call.results or ((kernel.outputs[0].name, _root(rule, entry)),)
    for name, target in results:
        types, told = _types(rule, entry, EName(target, call.span))
        if types is not None:
            yield name, call.span, types, told


def _root(rule: Rule, entry: EmitEntry) -> str:
    """The result's name in the variants that the entry takes, "" where they differ."""
    names = {v.results[0] for v in rule.variants if not entry.variants or v.name in entry.variants}
    return names.pop() if len(names) == 1 else ""


def _types(rule: Rule, entry: EmitEntry, expression: Expression) -> tuple[Types, str]:
    match expression:
        case EName(name=name) if name in rule.given and not rule.given[name].const:
            type_ = rule.given[name]
            return elements(type_.dtype), f"`{name}` is {capture_type_text(type_)} in `given` ({type_.span})"
        case EApply(fn="stored", args=(EName(name=name),)) if name in entry.stored and not _const(rule, name):
            dtype = entry.stored[name].dtype
            types = elements("real" if dtype == "float" else dtype)
            return types, f"`{name}` is stored as {dtype} ({entry.stored[name].span})"
    return None, ""


def _const(rule: Rule, name: str) -> bool:
    return name in rule.given and rule.given[name].const
