"""One operator of a pattern: the nodes it takes, the inner Q-DQ pairs it looks through, the attributes it wants."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

from fusion_engine.covering.types import Cause
from fusion_engine.language.types import OpPattern
from fusion_engine.matching.attributes import attribute_slots, bind_attributes, may_bind, say, silent, unmentioned
from fusion_engine.matching.facts import DEQUANTIZE, QUANTIZE, Known, Virtual
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
    takes, fits = _acceptance(p, members), _fitting(p)
    enter = _entering(p, parent, then, slot)
    op, wanted = p.op, p.op or p.callee or f"one of `{p.op_class}`"

    def operator(st: State, value: object) -> None:
        view = st.facts.view
        index = view.producer.get(value) if value.__class__ is str else None
        if index is not None and index < st.low:
            st.low = index
        node = view.nodes[index] if index is not None else _maker(st, value)
        if node is None:
            if st.explain:
                st.fail(_other_operator(p, wanted, label, _source(value)))
        elif value.__class__ is str and (node.op == op or takes(node)):
            if fits(st, node, value):
                enter(st, node)
        elif (looked := _through(st, value, node, label, moved)) is not None:
            _behind(st, *looked, operator)
        elif st.explain:
            st.fail(_other_operator(p, wanted, label, node_name(node)), node.index)

    return operator


def _behind(st: State, real: str, pair: InnerPair, operator: Callable[[State, object], None]) -> None:
    """Go on before a quantisation inside the match."""
    st.pairs.append(pair)
    st.inside.extend(pair.nodes)
    operator(st, real)
    del st.inside[len(st.inside) - len(pair.nodes) :]
    st.pairs.pop()


def _fitting(p: OpPattern) -> Callable[[State, ViewNode, object], bool]:
    """Whether a node of the right operator may be it: output, number of inputs, scope, attributes left unsaid."""
    mentioned = frozenset(a.name for a in p.attrs)
    arity, variadic, output = len(p.inputs), p.rest is not None, p.output

    def fits(st: State, node: ViewNode, value: object) -> bool:
        reason = _unfit(st, node, value, output, arity, variadic)
        unsaid = silent(node, mentioned) if reason is None else None
        if reason is None and unsaid is None:
            return True
        if st.explain:
            cause = Cause(reason or "", node_name(node), span=p.span) if unsaid is None else unmentioned(p, *unsaid)
            st.fail(cause, node.index, near=True)
        return False

    return fits


def _entering(
    p: OpPattern, parent: int, then: Callable[[State], None], slot: Callable[[str], int]
) -> Callable[[State, ViewNode], None]:
    """Bind what the node itself binds, go on to its operands (both ways where they commute), and unbind."""
    attrs, commutative = attribute_slots(p, slot), p.commutative
    captured = None if p.op_capture is None else slot(p.op_capture)

    def enter(st: State, node: ViewNode) -> None:
        st.step()
        if captured is not None and not may_bind(st, captured, Known(node.op)):
            return
        bound = bind_attributes(st, node, attrs)
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

    return enter


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


def _other_operator(p: OpPattern, wanted: str, label: str, had: str) -> Cause:
    what = f"{wanted} is expected for {label}" if label and label != wanted else f"{wanted} is expected"
    reason = f"{what}, the graph has {had}"
    return Cause(reason, had, wanted, "an alternative `p | q` can accept another form", p.span)


# ---- words ----


def node_name(node: ViewNode) -> str:
    """`Relu `relu_3``: the operator and the first node of the file that it stands for."""
    origin = node.origins[0] if node.origins and node.origins[0] else node.outputs[0]
    return f"{node.op} `{origin}`"


def _source(value: object) -> str:
    if value is None:
        return "no input"
    if isinstance(value, Known):
        return say(value.value)
    return f"the graph input or constant `{value.stored if isinstance(value, Virtual) else value}`"
