"""One operator of a pattern: the nodes it takes, the inner Q-DQ pairs it looks through, the attributes it wants."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import cache

import onnx.defs

from fusion_engine.covering.types import Cause
from fusion_engine.language.operators import operators
from fusion_engine.language.types import AttrPattern, OpPattern
from fusion_engine.matching.facts import DEQUANTIZE, QUANTIZE, Known, Virtual
from fusion_engine.matching.literals import LiteralValue, attribute_equals, plain
from fusion_engine.matching.state import InnerPair, State
from fusion_engine.view.marks import OUTLINED
from fusion_engine.view.types import ViewNode

# The input that holds axes; its negative literals count from the rank of input 0, or of the result.
AXES_INPUT = {
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"), 1),
    **dict.fromkeys(("ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Squeeze", "Unsqueeze", "CumSum"), 1),
    "Slice": 3,
    "Pad": 3,
}
AXES_OF_RESULT = frozenset(("Unsqueeze",))
# Attributes that only repeat what the operands' shapes say: a pattern need not mention them.
IMPLIED = frozenset(("kernel_shape", "hidden_size", "num_outputs"))
UNIT, NOTHING = frozenset(("strides", "dilations")), frozenset(("pads", "output_padding"))
POOLS = frozenset(("MaxPool", "AveragePool", "LpPool"))

AttrCheck = Callable[[State, ViewNode], str | None]


@cache
def schema_defaults(op: str) -> tuple[tuple[str, LiteralValue], ...]:
    """Every attribute of an operator with its default, None where there is none."""
    schema = operators().get(op)
    if schema is None:
        return ()
    return tuple((name, _default(attr)) for name, attr in sorted(schema.attributes.items()))


def _default(attr: onnx.defs.OpSchema.Attribute) -> LiteralValue:
    kind = attr.default_value.type
    if not kind:
        return None
    value = onnx.helper.get_attribute_value(attr.default_value)
    found = plain(value)
    return found if isinstance(found, (int, float, str, tuple)) else None


@cache
def silent_attributes(op: str, mentioned: frozenset[str]) -> tuple[tuple[str, LiteralValue], ...]:
    """Attributes that a pattern says nothing about: these must have their schema's default."""
    skipped = mentioned | (IMPLIED - {"kernel_shape"} if op in POOLS else IMPLIED)
    return tuple((n, d) for n, d in schema_defaults(op) if n not in skipped)


def callee_matches(glob: str, op: str, overload: str) -> bool:
    """`domain::name[:overload]` against a glob; exporters number the instances of one module (`GRU.1`)."""
    names = (op, f"{op}:{overload}", re.sub(r"\.\d+$", "", op))
    return any(fnmatchcase(name, glob) for name in names)


def compile_operator(
    p: OpPattern,
    parent: int,
    members: frozenset[str],
    then: Callable[[State], None],
    slot: Callable[[str], int],
    label: str,
    moved: bool,
) -> Callable[[State, object], None]:
    """The matcher of one operator; operands are matched by `then`, which reads `State.nodes[parent]`."""
    takes = _acceptance(p, members)
    attrs = _attributes(p, slot)
    mentioned = frozenset(a.name for a in p.attrs)
    arity, variadic, output, commutative = len(p.inputs), p.rest is not None, p.output, p.commutative
    op, captured = p.op, None if p.op_capture is None else slot(p.op_capture)
    wanted = p.op or p.callee or f"one of `{p.op_class}`"

    def operator(st: State, value: object) -> None:
        view = st.facts.view
        index = view.producer.get(value) if value.__class__ is str else None
        if index is not None and index < st.low:
            st.low = index
        node = view.nodes[index] if index is not None else _maker(st, value)
        if node is None:
            if st.explain:
                st.fail(_other_operator(p, wanted, label, _source(value)))
            return
        if isinstance(value, Virtual) or not (node.op == op or takes(node)):
            looked = _through(st, value, node, label, moved)
            if looked is None:
                if st.explain:
                    st.fail(_other_operator(p, wanted, label, node_name(node)), node.index)
                return
            real, pair = looked
            st.pairs.append(pair)
            st.inside.extend(pair.nodes)
            operator(st, real)
            del st.inside[len(st.inside) - len(pair.nodes) :]
            st.pairs.pop()
            return
        reason = _unfit(st, node, value, output, arity, variadic)
        if reason is not None:
            if st.explain:
                st.fail(Cause(reason, node_name(node), span=p.span), node.index, near=True)
            return
        silent = _silent(node, mentioned)
        if silent is not None:
            if st.explain:
                st.fail(_unmentioned(p, *silent), node.index, near=True)
            return
        st.step()
        if captured is not None and not _may_bind(st, captured, Known(node.op)):
            return
        bound = _bind_attributes(st, node, attrs)
        if bound is None:
            return
        before = None if captured is None else st.values[captured]
        if captured is not None:
            st.values[captured] = Known(node.op)
        st.nodes[parent] = node
        st.inside.append(node.index)
        st.matched += 1
        st.swapped[parent] = False
        then(st)
        if commutative and len(node.inputs) == 2 and node.inputs[0] != node.inputs[1]:
            st.nodes[parent], st.swapped[parent] = node, True
            then(st)
        st.matched -= 1
        st.inside.pop()
        for at in bound:
            st.values[at] = None
        if captured is not None:
            st.values[captured] = before

    return operator


def _acceptance(p: OpPattern, members: frozenset[str]) -> Callable[[ViewNode], bool]:
    if p.op is not None:
        return lambda _: False
    if p.callee is not None:
        glob = p.callee
        return lambda node: callee_matches(glob, node.op, node.overload)
    return lambda node: node.op in members


def _maker(st: State, value: object) -> ViewNode | None:
    name = value.stored if isinstance(value, Virtual) else value
    index = st.facts.view.producer.get(name) if isinstance(name, str) else None
    return None if index is None else st.facts.view.nodes[index]


def _through(st: State, value: object, node: ViewNode, label: str, moved: bool) -> tuple[str, InnerPair] | None:
    """Over an inner QuantizeLinear - DequantizeLinear with equal parameters, to the real value before it."""
    facts = st.facts
    if node.op == DEQUANTIZE and isinstance(value, str):
        quantiser = _maker(st, node.inputs[0])
        passed: tuple[int, ...] = (node.index,)
        expected = facts.lens(node)
    else:
        quantiser, passed = node, ()
        expected = value.quantisation if isinstance(value, Virtual) else (facts.lens(node) if moved else None)
    if quantiser is None or quantiser.op != QUANTIZE or quantiser.inputs[0] is None or expected is None:
        return None
    if facts.lens(quantiser) != expected:
        return None
    return quantiser.inputs[0], InnerPair(label, expected, (*passed, quantiser.index), moved)


def _unfit(st: State, node: ViewNode, value: object, output: int, arity: int, variadic: bool) -> str | None:
    if len(node.outputs) <= output or node.outputs[output] != value:
        return f"another output of {node_name(node)} is needed"
    if not variadic and len(node.inputs) > arity and any(i is not None for i in node.inputs[arity:]):
        return f"{node_name(node)} has more inputs than the {arity} of the pattern"
    if node.overload.startswith(OUTLINED) and not st.scope:
        return f"{node_name(node)} is a region of the file's metadata: only a variant with `scope` takes it"
    if st.scope and node.scopes[: len(st.scope)] != st.scope:
        return f"{node_name(node)} lies outside the scope {st.scope[-1].name or st.scope[-1].cls}"
    return None


# ---- attributes ----


def _silent(node: ViewNode, mentioned: frozenset[str]) -> tuple[str, str, str] | None:
    """The attribute that the pattern leaves at its default and the node does not: its name, value and default."""
    for name, default in silent_attributes(node.op, mentioned):
        found = node.attrs.get(name)
        if found is None or found == default or _neutral(name, found):
            continue
        if not attribute_equals(found, default):
            return name, _say(found), _say(default)
    return None


def _unmentioned(p: OpPattern, name: str, had: str, default: str) -> Cause:
    reason = f"{name} is {had}, which the pattern does not mention (the default is {default})"
    return Cause(reason, f"{name}={had}", f"{name}={default}", f"write `{name}={name}` if the kernel takes it", p.span)


def _other_operator(p: OpPattern, wanted: str, label: str, had: str) -> Cause:
    what = f"{wanted} is expected for {label}" if label and label != wanted else f"{wanted} is expected"
    reason = f"{what}, the graph has {had}"
    return Cause(reason, had, wanted, "an alternative `p | q` can accept another form", p.span)


def _neutral(name: str, found: object) -> bool:
    """What the standard says of a window's attributes that have no default of fixed length."""
    if not isinstance(found, tuple):
        return False
    return all(v == 1 for v in found) if name in UNIT else name in NOTHING and not any(found)


Attributes = Sequence[tuple[AttrPattern, int | None]]


def _attributes(p: OpPattern, slot: Callable[[str], int]) -> Attributes:
    return tuple((a, None if a.capture is None else slot(a.capture)) for a in p.attrs)


def _bind_attributes(st: State, node: ViewNode, attrs: Attributes) -> list[int] | None:
    """The slots newly bound, or None (nothing bound) where an attribute does not fit."""
    bound: list[int] = []
    for a, slot in attrs:
        found = plain(node.attrs.get(a.name))
        if slot is None:
            fits = attribute_equals(found, a.literal) or _same_axis(st, node, a, found)
        elif st.values[slot] is None:
            st.values[slot] = Known(found)
            bound.append(slot)
            continue
        else:
            fits = _may_bind(st, slot, Known(found))
        if not fits:
            if st.explain:
                st.fail(_other_attribute(st, a, slot, found), node.index, near=True)
            for at in bound:
                st.values[at] = None
            return None
    return bound


def _other_attribute(st: State, a: AttrPattern, slot: int | None, found: object) -> Cause:
    bound = None if slot is None else st.values[slot]
    wanted = _say(bound.value if isinstance(bound, Known) else a.literal)
    change = "a name in place of the value captures any" if slot is None else f"`{a.capture}` is bound already"
    return Cause(
        f"{a.name} is {_say(found)}, not {wanted}", f"{a.name}={_say(found)}", f"{a.name}={wanted}", change, a.span
    )


def _may_bind(st: State, slot: int, value: Known) -> bool:
    return st.values[slot] is None or st.values[slot] == value


def _same_axis(st: State, node: ViewNode, a: AttrPattern, found: object) -> bool:
    """A negative axis of the pattern counts from the rank, where that is known."""
    if a.name not in ("axis", "axes") or not node.inputs:
        return False
    rank = st.facts.rank(node.inputs[0] or "")
    if rank is None:
        return False
    wanted = a.literal if isinstance(a.literal, tuple) else (a.literal,)
    have = found if isinstance(found, tuple) else (found,)
    if isinstance(a.literal, tuple) != isinstance(found, tuple) or len(wanted) != len(have):
        return False
    pairs = list(zip(wanted, have, strict=True))
    return all(isinstance(w, int) and isinstance(h, int) and w % rank == h % rank for w, h in pairs) if rank else False


# ---- words ----


def node_name(node: ViewNode) -> str:
    """`Relu `relu_3``: the operator and the first node of the file that it stands for."""
    origin = node.origins[0] if node.origins and node.origins[0] else node.outputs[0]
    return f"{node.op} `{origin}`"


def _source(value: object) -> str:
    if value is None:
        return "no input"
    if isinstance(value, Known):
        return _say(value.value)
    return f"the graph input or constant `{value.stored if isinstance(value, Virtual) else value}`"


def _say(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float):
        return f"{value:.9g}"
    return "absent" if value is None else str(list(value) if isinstance(value, tuple) else value)
