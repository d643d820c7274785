"""A view in which nodes come and go. Nodes keep their index, new ones get the next; `dead` ones are in nobody's way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from fusion_engine.view.draft import Node
from fusion_engine.view.rework import captured_renamed
from fusion_engine.view.types import View, ViewNode, ViewValue


@dataclass(eq=False)
class Workspace:
    """`view` shares the containers that are changed here: what was true of it before a change need not be after."""

    nodes: list[ViewNode]
    values: dict[str, ViewValue]
    producer: dict[str, int]
    users: dict[str, tuple[int, ...]]
    view: View
    dead: set[int] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, view: View) -> Workspace:
        nodes, values = list(view.nodes), dict(view.values)
        producer, users = dict(view.producer), dict(view.users)
        shared = replace(view, nodes=nodes, values=values, producer=producer, users=users)
        return cls(nodes, values, producer, users, shared, taken={*values, *view.aliases})

    @property
    def living(self) -> list[ViewNode]:
        return [n for n in self.nodes if n.index not in self.dead]

    def remove(self, indices: Iterable[int]) -> None:
        """Take nodes away; their results are there still, made by nobody."""
        for index in indices:
            node = self.nodes[index]
            self.dead.add(index)
            for value in dict.fromkeys((*node.inputs, *node.captures)):
                if value is not None:
                    self.users[value] = tuple(u for u in self.users[value] if u != index)
            for output in node.outputs:
                self.producer.pop(output, None)

    def add(self, node: Node) -> int:
        """A canonical node; its operands and results are values of the workspace already."""
        index = len(self.nodes)
        self.nodes.append(
            ViewNode(
                index=index,
                op=node.op,
                inputs=tuple(node.inputs),
                outputs=tuple(node.outputs),
                attrs=MappingProxyType(dict(node.attrs)),
                origins=node.origins,
                scopes=node.scopes,
                overload=node.overload,
                metadata=node.metadata,
            )
        )
        for value in dict.fromkeys(node.inputs):
            if value is not None:
                self.users[value] = (*self.users.get(value, ()), index)
        for output in node.outputs:
            if output:
                self.producer[output] = index
                self.users.setdefault(output, ())
        return index

    def use_instead(self, old: str, new: str) -> None:
        """Let everything that reads `old` read `new`."""
        readers = self.users.get(old, ())
        for index in readers:
            node = self.nodes[index]
            inputs = tuple(new if i == old else i for i in node.inputs)
            attrs = captured_renamed(node, {old: new}) if old in node.captures else node.attrs
            captures = tuple(dict.fromkeys(new if c == old else c for c in node.captures))
            self.nodes[index] = replace(node, inputs=inputs, attrs=attrs, captures=captures)
        self.users[old] = ()
        self.users[new] = tuple(sorted({*self.users.get(new, ()), *readers}))
