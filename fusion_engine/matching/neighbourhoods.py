"""Which nodes of a view have the same surroundings: repeated blocks of a network are searched once.

A node is described by its operator, attributes and types, by how far before it its operands are made and how far behind
it its results are read, and by its constants: small ones by content, others, scales and zero points among them, by
how long ago they were read before. Two nodes with equal descriptions from `BEFORE` nodes before them to `BEHIND` nodes
behind them have equal graphs around them, node for node, up to the numbers in other constants.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from fusion_engine.graph import Quantisation
from fusion_engine.matching.facts import DEQUANTIZE, QUANTIZE, SCALAR, SMALL, Facts
from fusion_engine.view.types import ViewNode

BEHIND = 64  # how far a value's maker or user may be; what is farther is told by its name
BEFORE = 256
MOST_USERS = 16
ALONE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """`own[i]` numbers the description of node i by itself."""

    own: np.ndarray

    @property
    def classes(self) -> list[int]:
        """Nodes of equal surroundings have equal numbers; ALONE where no other node has the same."""
        return _repeated(_classes(self.own))

    def apart(self, marked: list[bool]) -> Surroundings:
        """The same, told apart by one more bit of each node."""
        return Surroundings(self.own * 2 + np.asarray(marked, np.int64))


def surroundings(facts: Facts) -> Surroundings:
    """Describe every node, in one pass."""
    describe = _Describer(facts)
    numbers: dict[Hashable, int] = {}
    own = [numbers.setdefault(describe.node(n), len(numbers)) for n in facts.view.nodes]
    return Surroundings(np.asarray(own, np.int64))


def told_by_content(facts: Facts, name: object) -> bool:
    """Whether the numbers of a constant are part of the descriptions."""
    if not isinstance(name, str) or name in facts.view.producer:
        return False
    const = facts.view.values[name].const
    if const is None:
        return True
    return name in facts.zeros or (name not in facts.parameters and _small(const))


def _small(const: np.ndarray) -> bool:
    return const.nbytes <= (SMALL if const.dtype.kind in "iub" else SCALAR)


# ---- windows ----


def _classes(own: np.ndarray) -> np.ndarray:
    """Numbers of whole windows, by doubling: a window of 2n is a pair of windows of n."""
    padded = np.concatenate([np.arange(-BEFORE, 0) - 1, own, -np.arange(BEHIND) - BEFORE - 2])
    length, ranks = 1, _rank(padded)
    behind = ranks
    while length < BEFORE:
        ranks = _pairs(ranks, length)
        length *= 2
        behind = ranks if length == BEHIND else behind
    n = len(own)
    return _rank(ranks[:n] * (int(behind.max()) + 1) + behind[BEFORE : BEFORE + n])


def _pairs(ranks: np.ndarray, length: int) -> np.ndarray:
    most = int(ranks.max()) + 1
    second = np.concatenate([ranks[length:], np.full(length, most)])
    return _rank(ranks * (most + 1) + second)


def _rank(keys: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.unique(keys, return_inverse=True)[1].reshape(-1)
    return found


def _repeated(classes: np.ndarray) -> list[int]:
    counts = np.bincount(classes) if len(classes) else np.zeros(0, np.int64)
    alone: list[int] = np.where(counts[classes] > 1, classes, ALONE).tolist()
    return alone


# ---- one node ----


@dataclass(eq=False)
class _Describer:
    facts: Facts
    kinds: dict[Hashable, int] = field(default_factory=dict)  # element types with shapes, by number
    last: dict[Hashable, int] = field(default_factory=dict)
    contents: dict[str, tuple[Hashable, bool]] = field(default_factory=dict)
    attributes: dict[int, Hashable] = field(default_factory=dict)
    meanings: dict[int, int] = field(default_factory=dict)
    quantisations: dict[Quantisation, int] = field(default_factory=dict)

    def node(self, node: ViewNode) -> Hashable:
        operands = node.inputs
        meaning: Hashable = None
        if node.op in (QUANTIZE, DEQUANTIZE):
            meaning, operands = self._parameters(node), operands[:1]
        inputs = tuple([0 if v is None else self._input(node, v) for v in operands])
        outputs = tuple([self._output(node, v) for v in node.outputs if v])
        attributes = self._attributes(node)
        return (node.op, node.overload, len(node.outputs), attributes, inputs, meaning, outputs, node.captures)

    def _attributes(self, node: ViewNode) -> Hashable:
        """By identity: many nodes share theirs (see `freeze`)."""
        known = self.attributes.get(id(node.attrs))
        if known is not None:
            return known
        items: Hashable = tuple(node.attrs.items())
        try:
            hash(items)
        except TypeError:
            items = node.index  # a tensor or a graph: like no other
        self.attributes[id(node.attrs)] = items
        return items

    def _input(self, node: ViewNode, value: str) -> Hashable:
        view = self.facts.view
        maker = view.producer.get(value)
        if maker is not None:
            far = node.index - maker
            outputs = view.nodes[maker].outputs
            return value if far > BEHIND else far if len(outputs) == 1 else (far, outputs.index(value))
        known = self.contents.get(value)
        if known is None:
            known = self._content(value)
            if known is None:
                return value
            self.contents[value] = known
        content, small = known
        return content if small else (content, self._before(node, value))

    def _content(self, value: str) -> tuple[Hashable, bool] | None:
        """What is told of a constant, and whether that is all of it."""
        known = self.facts.view.values[value]
        if known.const is None:
            return None
        small = _small(known.const) and value not in self.facts.parameters
        return (known.dtype, known.const.shape, known.const.tobytes() if small else 0, small), small

    def _parameters(self, node: ViewNode) -> Hashable:
        """A quantisation's scale and zero point, told as one by when they were seen together before."""
        quantisation = self.facts.lens(node)
        if quantisation is None:
            return node.index
        values = self.facts.view.values
        x = node.inputs[0]
        types = tuple([values[v].dtype for v in node.inputs[1:] if v is not None])
        weight = x is not None and values[x].const is not None
        return (types, weight and any(quantisation.zero), self._meaning(node, quantisation))

    def _before(self, node: ViewNode, what: Hashable) -> int:
        """How many nodes ago this was seen; 0 where it was not, or too long ago."""
        before = node.index + 1 - self.last.get(what, -BEFORE)
        self.last[what] = node.index
        return before if before <= BEFORE else 0

    def _output(self, node: ViewNode, value: str) -> Hashable:
        known = self.facts.view.values[value]
        kind = self.kinds.setdefault((known.dtype, known.shape), len(self.kinds))
        meaning = None if known.quantisation is None else self._meaning(node, known.quantisation)
        return (kind, value in self.facts.outputs, meaning, self._users(node, value))

    def _meaning(self, node: ViewNode, q: Quantisation) -> Hashable:
        number = self.meanings.get(id(q))
        if number is None:  # equal ones have one number; many are one object, whose numbers need not be hashed again
            number = self.meanings[id(q)] = self.quantisations.setdefault(q, len(self.quantisations))
        return (len(q.scale), q.axis, self._before(node, number))

    def _users(self, node: ViewNode, value: str) -> Hashable:
        users = self.facts.view.users.get(value, ())
        if len(users) > MOST_USERS:
            return value
        near = [user - node.index for user in users]
        return tuple(near) if not near or near[-1] <= BEHIND else tuple([self._far(node, value, far) for far in near])

    def _far(self, node: ViewNode, value: str, far: int) -> Hashable:
        if far <= BEHIND:
            return far
        user = self.facts.view.nodes[node.index + far]
        return value if user.op in (QUANTIZE, DEQUANTIZE) else ALONE
