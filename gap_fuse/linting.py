"""lint(): which marks a model has for a backend to use, what a tool lost, what an exporter could still say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import onnx

from fusion_engine import plan, read_model
from fusion_engine.diagnostics import GapFuseError, Span, counted
from fusion_engine.model import check_model
from fusion_engine.view.order import CycleError
from fusion_engine.view.scopes import CLASSES
from gap_fuse.export.outlining import outline
from gap_fuse.export.scopes import instances
from gap_fuse.library import Library, load_library
from gap_fuse.measuring import observable, read_onnx
from gap_fuse.oracle import answers
from quantizer import known_ranges, statistics_of

CONTAINERS = ("torch.nn.modules.container.",)
SHOWN = 12


@dataclass(frozen=True, slots=True)
class Marks:
    """Counts of what a model says beyond its arithmetic. functions: calls by DOMAIN::NAME; classes: instances by module
    class, from metadata; named: nodes whose name holds a path; shaped: values with a known shape."""

    opset: int
    nodes: int
    values: int
    functions: Mapping[str, int]
    classes: Mapping[str, int]
    scoped: int
    named: int
    statistics: int
    ranges: int
    annotations: int
    shaped: int


@dataclass(frozen=True, slots=True)
class Lint:
    """The marks; sentences on what `after` lost; sentences on what an exporter could add."""

    marks: Marks
    lost: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


def lint(model: str | Path | onnx.ModelProto, after: str | Path | onnx.ModelProto | None = None) -> Lint:
    """Look at a model as an exporter wrote it and, with `after`, at what a tool made of it.

    Raises GapFuseError for files that are no models, and models that break ONNX's rules.
    """
    proto = read_onnx(model)
    check_model(proto, None if isinstance(model, onnx.ModelProto) else Span(str(model)))
    marks = marks_of(proto)
    lost = () if after is None else tuple(losses(marks, marks_of(read_onnx(after))))
    return Lint(marks, lost, tuple(advice(proto, marks, load_library())))


def marks_of(model: onnx.ModelProto) -> Marks:
    """Count a model's marks; malformed statistics raise GapFuseError."""
    nodes = list(_all_nodes(model))
    values = observable(model)
    local = {(f.domain, f.name) for f in model.functions}
    held = {i for n in model.graph.node if _has_classes(n) for i in instances(n)}
    shaped = {v.name for v in _infos(model) if v.type.tensor_type.HasField("shape")}
    return Marks(
        opset=max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0),
        nodes=len(nodes),
        values=len(values),
        functions=_counted(f"{n.domain}::{n.op_type}" for n in nodes if (n.domain, n.op_type) in local),
        classes=_counted(i.class_path for i in held),
        scoped=sum(map(_has_classes, nodes)),
        named=sum("/" in n.name.strip("/") for n in nodes),
        statistics=len(statistics_of(model)),
        ranges=len(known_ranges(model)),
        annotations=len(model.graph.quantization_annotation),
        shaped=len(shaped & set(values)),
    )


def losses(before: Marks, after: Marks) -> Iterator[str]:
    """What was there and is less, a sentence each."""
    gone = [f for f in before.functions if f not in after.functions]
    if gone:
        yield f"functions: {_listed(gone)} gone ({counted(sum(before.functions[f] for f in gone), 'call')})"
    for name, text in (
        ("scoped", "nodes with the exporter's module scopes"),
        ("named", "nodes whose name holds a path"),
        ("statistics", "values with statistics"),
        ("ranges", "values with a known range"),
        ("annotations", "quantization_annotation entries"),
        ("shaped", "values with a known shape"),
    ):
        was, now = getattr(before, name), getattr(after, name)
        if was and not now:
            yield f"{text}: all {was} gone"
        elif now * before.nodes < was * after.nodes:  # fewer in proportion: nodes that were merged are no loss
            yield f"{text}: {was} of {before.nodes} nodes' worth, now {now} of {after.nodes}"
    if after.opset < before.opset:
        yield f"opset {before.opset} became {after.opset}"


def advice(model: onnx.ModelProto, marks: Marks, library: Library) -> Iterator[str]:
    """What would help a backend, measured where it can be: by planning the model with and without it."""
    if not marks.functions and not marks.scoped:
        yield (
            "no functions and no module scopes: export with gap_fuse.export.fusion_friendly_export, "
            "or torch.onnx.export(dynamo=True)"
        )
    if not marks.statistics and not marks.ranges:
        yield "no statistics and no ranges: `gap-fuse stats MODEL --inputs samples.npz -o OUT.onnx` writes them"
    if marks.shaped < marks.values:
        values = counted(marks.values, "value")
        yield f"{marks.values - marks.shaped} of {values} without a shape: onnx.shape_inference adds them"
    yield from _of_kernels(model, marks, library)


def lint_to_json(found: Lint) -> dict[str, Any]:
    """The same as plain values."""
    return asdict(found)


def _of_kernels(model: onnx.ModelProto, marks: Marks, library: Library) -> Iterator[str]:
    kernels, problems = _kernels(model, library)
    yield from (f"no kernel: {p}" for p in problems[:SHOWN])
    if len(problems) > SHOWN:
        yield f"no kernel: and {counted(len(problems) - SHOWN, 'node')} more"
    kept = [c for c in marks.classes if not c.startswith(CONTAINERS)]
    if not kept:
        return
    outlined, left = _kernels(outline(model, kept).model, library)
    more = outlined - kernels
    if len(left) < len(problems) or more:
        yield f"its modules as functions (gap_fuse.export.outline) unlock: {_listed(sorted(more)) or 'a full plan'}"


def _kernels(model: onnx.ModelProto, library: Library) -> tuple[Counter[str], list[str]]:
    """The plan's kernel calls, or the first line of each node without one."""
    try:
        planned = plan(read_model(model, {}), library.rules, library.kernels, check=answers)
    except CycleError:
        raise
    except GapFuseError as e:
        return Counter(), [d.message for d in e.diagnostics]
    return Counter(call.kernel for c in planned.plan.chosen for call in c.calls), []


def _all_nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    yield from model.graph.node
    for f in model.functions:
        yield from f.node


def _has_classes(node: onnx.NodeProto) -> bool:
    return any(p.key == CLASSES for p in node.metadata_props)


def _infos(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    return [*model.graph.input, *model.graph.value_info, *model.graph.output]


def _counted(names: Iterator[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _listed(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
