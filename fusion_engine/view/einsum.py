"""Einsum as Transpose, Reshape, MatMul and ReduceSum: what it is opened into where no rule takes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np

from fusion_engine.view.draft import Draft, Node


@dataclass(slots=True)
class _Opened:
    """The nodes so far. A value is its name and its labels, one an axis; `extents` are the labels'."""

    draft: Draft
    node: Node
    extents: dict[str, int]
    nodes: list[Node] = field(default_factory=list)

    def add(self, op: str, inputs: list[str], **attrs: object) -> str:
        name = self.draft.fresh(f"{self.node.outputs[0]}_{op.lower()}")
        self.nodes.append(self.node.derive(op, inputs, [name], **attrs))
        return name

    def ordered(self, name: str, have: str, want: str) -> str:
        """The value with its axes in another sequence."""
        return name if have == want else self.add("Transpose", [name], perm=tuple(have.index(c) for c in want))

    def shaped(self, name: str, shape: list[int]) -> str:
        target = self.draft.put_const(np.asarray(shape, np.int64), f"{self.node.outputs[0]}_shape")
        return self.add("Reshape", [name, target], allowzero=0)

    def summed(self, name: str, have: str, keep: str) -> tuple[str, str]:
        """The value without the labels that are not kept."""
        gone = [i for i, c in enumerate(have) if c not in keep]
        if not gone:
            return name, have
        axes = self.draft.put_const(np.asarray(gone, np.int64), f"{self.node.outputs[0]}_axes")
        kept = "".join(c for c in have if c in keep)
        return self.add("ReduceSum", [name, axes], keepdims=0, noop_with_empty_axes=0), kept

    def size(self, labels: str) -> int:
        return prod(self.extents[c] for c in labels)

    def product(self, a: tuple[str, str], b: tuple[str, str], keep: str) -> tuple[str, str]:
        """The product of two values, summed over the labels of both that are not kept."""
        shared = [c for c in a[1] if c in b[1]]
        batch, inner = ("".join(c for c in shared if (c in keep) == kept) for kept in (True, False))
        left, right = ("".join(c for c in labels if c not in shared) for labels in (a[1], b[1]))
        x = self.ordered(*a, batch + left + inner)
        y = self.ordered(*b, batch + inner + right)
        labels = batch + left + right
        if inner:
            x = self.shaped(x, [self.size(batch), self.size(left), self.size(inner)])
            y = self.shaped(y, [self.size(batch), self.size(inner), self.size(right)])
            made = self.add("MatMul", [x, y])
            return self.shaped(made, [self.extents[c] for c in labels]), labels
        if right:
            x = self.shaped(x, [self.extents[c] for c in batch + left] + [1] * len(right))
        if left:
            y = self.shaped(y, [self.size(c) for c in batch] + [1] * len(left) + [self.size(c) for c in right])
        return self.add("Mul", [x, y]), labels


def open_einsum(draft: Draft, node: Node) -> list[Node] | None:
    """The nodes that compute an Einsum, operands taken in from the left; None for an ellipsis, a label twice in one
    operand (a diagonal), extents that broadcast or are unknown."""
    terms, result = _terms(str(node.attrs.get("equation", "")))
    shapes = [draft.static(i) for i in node.inputs]
    extents: dict[str, int] = {}
    if result is None or len(terms) != len(shapes):
        return None
    for labels, shape in zip(terms, shapes, strict=True):
        if shape is None or len(shape) != len(labels) or len(set(labels)) != len(labels):
            return None
        if any(extents.setdefault(c, d) != d for c, d in zip(labels, shape, strict=True)):
            return None
    if len(set(result)) != len(result) or any(c not in extents for c in result):
        return None
    return _opened(_Opened(draft, node, extents), terms, result)


def _opened(work: _Opened, terms: list[str], result: str) -> list[Node]:
    values = [(str(name), labels) for name, labels in zip(work.node.inputs, terms, strict=True)]
    current = values[0]
    for i, following in enumerate(values[1:], start=1):
        later = result + "".join(terms[i + 1 :])
        current = work.summed(*current, following[1] + later)
        current = work.product(current, work.summed(*following, current[1] + later), later)
    name, labels = work.summed(*current, result)
    work.nodes.append(
        work.node.derive("Transpose", [name], work.node.outputs[:1], perm=tuple(labels.index(c) for c in result))
    )
    return work.nodes


def _terms(equation: str) -> tuple[list[str], str | None]:
    """The labels of each operand and of the result; no result where this is no such equation."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if not all(t.isalpha() or not t for t in (*terms, right)):
        return terms, None
    if arrow:
        return terms, right
    letters = "".join(terms)
    return terms, "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
