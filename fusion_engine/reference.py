"""run_reference(): what every buffer of a FusedGraph holds, by the kernels' numpy references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fusion_engine.aliases import look_through
from fusion_engine.diagnostics import GapFuseError
from fusion_engine.graph import Buffer, Call, FusedGraph
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.kernels.references import answer


def run_reference(
    graph: FusedGraph, kernels: Mapping[str, Kernel], inputs: Mapping[str, np.ndarray]
) -> Mapping[str, np.ndarray]:
    """The value of every buffer (logical order, constants and views included), by name.

    Raises GapFuseError: an input is missing, or it or the answer of a reference has another shape or dtype, or a
    reference fails, at its line.
    """
    run = _Run(graph, kernels)
    for name in graph.inputs:
        run.values[name] = _checked(graph.buffer[name], inputs.get(name))
    for call in graph.calls:
        run.call(call)
    return {b.name: run.value(b.name) for b in graph.buffers}


def run_calls(
    graph: FusedGraph, kernels: Mapping[str, Kernel], inputs: Mapping[str, np.ndarray], made: Mapping[str, np.ndarray]
) -> Mapping[str, np.ndarray]:
    """What each call's reference answers to the operands that `made` holds (every call's results as something else, the
    C for one, computed them), by result. So one call's rounding does not blur the next one's comparison.

    Raises GapFuseError as run_reference.
    """
    run = _Run(graph, kernels)
    run.values |= {name: _checked(graph.buffer[name], inputs.get(name)) for name in graph.inputs}
    run.values |= {b: _checked(graph.buffer[b], made.get(b)) for c in graph.calls for _, b in c.results}
    return {name: value for call in graph.calls for name, value in run.answers(call)}


def _checked(buffer: Buffer, value: np.ndarray | None) -> np.ndarray:
    if value is None:
        raise GapFuseError(f"there is no value for the input {buffer.name}")
    if value.shape != buffer.shape or value.dtype != buffer.dtype:
        raise GapFuseError(
            f"the input {buffer.name} is {buffer.dtype}{list(buffer.shape)}, not {value.dtype}{list(value.shape)}"
        )
    return value


class _Run:
    def __init__(self, graph: FusedGraph, kernels: Mapping[str, Kernel]) -> None:
        self.graph, self.kernels = graph, kernels
        self.values: dict[str, np.ndarray] = {b.name: b.data for b in graph.buffers if b.data is not None}
        self.written = {b for c in graph.calls for _, b in c.results}
        self.views: dict[str, list[str]] = {}
        for b in graph.buffers:
            if b.alias is not None:
                self.views.setdefault(b.alias.of, []).append(b.name)
        self.parts: dict[str, list[Buffer]] = {}
        for b in graph.buffers:
            if b.alias is not None and self._is_made(b.name):
                self.parts.setdefault(b.alias.of, []).append(b)

    def _is_made(self, name: str) -> bool:
        """Written by a call, or put together from views that are."""
        return name in self.written or any(self._is_made(b) for b in self.views.get(name, ()))

    def value(self, name: str) -> np.ndarray:
        if name not in self.values:
            self.values[name] = self._seen(self.graph.buffer[name])
        return self.values[name]

    def _seen(self, b: Buffer) -> np.ndarray:
        if b.name in self.parts:
            return self._joined(b)
        if b.alias is None:
            raise GapFuseError(f"nothing has written the buffer {b.name} when it is read")
        return look_through(b.alias, self.value(b.alias.of), b.shape)

    def _joined(self, b: Buffer) -> np.ndarray:
        result = np.zeros(b.shape, b.dtype)
        covered = np.zeros(b.shape, bool)
        for part in self.parts[b.name]:
            assert part.alias is not None
            look_through(part.alias, result, part.shape)[...] = self.value(part.name)
            look_through(part.alias, covered, part.shape)[...] = True
        if not covered.all():
            raise GapFuseError(f"the parts of {b.name} do not cover it")
        return result

    def call(self, call: Call) -> None:
        self.values |= dict(self.answers(call))

    def answers(self, call: Call) -> list[tuple[str, np.ndarray]]:
        """The reference's results, by buffer."""
        kernel = self.kernels[call.kernel]
        operands = dict(call.operands)
        arguments = [self._argument(o.name, o.variadic, operands) for o in kernel.inputs]
        found = answer(kernel, arguments, dict(call.attrs))
        answers = found if isinstance(found, tuple) else (found,)
        names = dict(call.results)
        return [
            (names[o.name], _result(call, self.graph.buffer[names[o.name]], np.asarray(value)))
            for o, value in zip(kernel.outputs, answers, strict=True)
            if o.name in names
        ]

    def _argument(self, name: str, variadic: bool, operands: Mapping[str, str]) -> Any:
        if not variadic:
            return self.value(operands[name]) if name in operands else None
        count = sum(1 for n in range(len(operands)) if f"{name}{n}" in operands)
        return tuple(self.value(operands[f"{name}{n}"]) for n in range(count))


def _result(call: Call, buffer: Buffer, value: np.ndarray) -> np.ndarray:
    if value.shape != buffer.shape or value.dtype != buffer.dtype:
        raise GapFuseError(
            f"the reference of {call.kernel} ({call.name}) answers {value.dtype}{list(value.shape)}"
            f" for {buffer.name}, which is {buffer.dtype}{list(buffer.shape)}"
        )
    return value
