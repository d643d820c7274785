"""emit(): a schedule printed as a folder of C that builds with `make` and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span
from fusion_engine.graph import Call, FusedGraph
from fusion_engine.kernels.descriptor import Kernel
from tiler.emit.fetches import counts_at
from tiler.emit.network import config_header, image_bytes, network_header, network_source
from tiler.emit.pack import pack
from tiler.emit.sources import KernelSource, common_headers, kernel_source
from tiler.emit.unit import CallUnit, c_names
from tiler.schedule import CallPlan, PackedTiles, Schedule
from tiler.target import Target

_NOT_COPIED = (".yaml", ".md")


@dataclass(frozen=True)
class SourceTree:
    """Relative paths to contents, in the order of their names."""

    files: Mapping[str, bytes]


def emit(
    graph: FusedGraph,
    kernels: Mapping[str, Kernel],
    schedule: Schedule,
    target: Target,
    common: Path | None = None,
) -> SourceTree:
    """Print a schedule as C99: network.c, the kernels it uses, weights.bin, the runtime, the target's port, a Makefile
    and a test main. `common` is the folder of what ports share (by default `common` beside the target's folder).

    The same arguments give the same bytes. Raises GapFuseError where a source is missing or a generator fails.
    """
    plans = {p.call: p for p in schedule.calls}
    sources: list[KernelSource] = []
    units: list[CallUnit] = []
    names = c_names([call.name for call in graph.calls])
    for call in graph.calls:
        unit, source = _unit(names[call.name], call, plans[call.name], kernels[call.kernel])
        units.append(_fetching(_rolled(unit, len(units), schedule), len(units), schedule))
        sources.append(source)
    files: dict[str, bytes] = {
        "network.c": network_source(graph, schedule, units).encode(),
        "network.h": network_header(graph).encode(),
        "include/gf_config.h": config_header(schedule, target).encode(),
        "weights.bin": weight_image(graph, schedule),
        **{f"include/{name}": text.encode() for name, text in common_headers(kernels).items()},
        **_kernel_files(units, sources),
        **_port_files(target, common or target.folder.parent / "common"),
    }
    return SourceTree(dict(sorted(files.items())))


def _unit(name: str, call: Call, plan: CallPlan, kernel: Kernel) -> tuple[CallUnit, KernelSource]:
    implementation = next(i for i in kernel.implementations if i.name == plan.implementation)
    variadic = _variadic(kernel, call)
    source = kernel_source(kernel, implementation, dict(plan.attrs), variadic)  # type: ignore[arg-type]
    return CallUnit(name, call, plan, kernel, implementation, source.symbol, variadic), source


def _rolled(unit: CallUnit, number: int, schedule: Schedule) -> CallUnit:
    """The unit of a call in a rolled group knows its rows."""
    roll = next((r for r in schedule.rolls if r.first <= number <= r.last), None)
    if roll is None:
        return unit
    axis, values, _ = roll.axes[number - roll.first]
    return replace(unit, rolled=(axis, values), row_bytes={r.root: r.row_bytes for r in roll.rings})


def _fetching(unit: CallUnit, number: int, schedule: Schedule) -> CallUnit:
    """The unit knows what is fetched before and while it runs."""
    roll = next((r for r in schedule.rolls if r.first <= number <= r.last), None)
    alone = unit.plan.loops[0].trips if unit.plan.loops else 1
    return replace(unit, fetches=counts_at(schedule, number, alone if roll is None else roll.steps))


def _variadic(kernel: Kernel, call: Call) -> int:
    names = {name for name, _ in call.operands}
    return sum(f"{o.name}{i}" in names for o in kernel.inputs if o.variadic for i in range(len(names)))


def _kernel_files(units: list[CallUnit], sources: list[KernelSource]) -> dict[str, bytes]:
    """Sources in one folder per kernel folder; argument headers beside the common ones: network.c includes them."""
    files: dict[str, bytes] = {}
    defined: dict[str, str] = {}
    for unit, source in zip(units, sources, strict=True):
        room = unit.kernel.folder.name
        folder = f"kernels/{room}"
        for name, text in source.files.items():
            path = f"include/{name}" if name.endswith("_args.h") else f"{folder}/{name}"
            if files.setdefault(path, text.encode()) != text.encode():
                raise GapFuseError(f"two kernels' folders are both named `{room}` and differ in {name}")
        unit_path = f"{folder}/{source.unit}"
        if defined.setdefault(source.symbol, unit_path) != unit_path:
            raise GapFuseError(f"the function {source.symbol} is in {defined[source.symbol]} and in {unit_path}")
    return files


def _port_files(target: Target, common: Path) -> dict[str, bytes]:
    """All files of the target's folder and of `common`: headers to include/, C to port/, rest to the top."""
    files: dict[str, bytes] = {}
    for folder in (common, target.folder):
        for path in sorted(folder.glob("*")):
            if path.is_file() and path.suffix not in _NOT_COPIED:
                files[_place(path)] = _read(path)
    return files


def _place(path: Path) -> str:
    if path.suffix == ".h":
        return f"include/{path.name}"
    return f"port/{path.name}" if path.suffix in (".c", ".S") else path.name


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as e:
        raise GapFuseError(Diagnostic(f"cannot be read: {e.strerror}", Span(str(path)))) from e


def weight_image(graph: FusedGraph, schedule: Schedule) -> bytes:
    """Every packed constant at its place in L3, zeros between."""
    image = np.zeros(image_bytes(schedule), np.uint8)
    for c in schedule.constants:
        here = image[c.cold : c.cold + c.bytes]
        if c.parts:
            _scatter(graph, here, c.parts)
            continue
        packed = pack(constant_value(graph, c.buffer), c.dims, c.order).tobytes()
        assert len(packed) == c.bytes, (c.name, len(packed), c.bytes)
        here[:] = np.frombuffer(packed, np.uint8)
    return image.tobytes()


def _scatter(graph: FusedGraph, image: np.ndarray, parts: Sequence[PackedTiles]) -> None:
    """Constants that lie between each other, tile by tile."""
    for part in parts:
        packed = pack(constant_value(graph, part.buffer), part.dims, part.order).reshape(part.extent)
        for at, box in zip(part.at, part.boxes, strict=True):
            tile = packed[tuple(slice(first, first + count) for first, count in box)].tobytes()
            image[at : at + len(tile)] = np.frombuffer(tile, np.uint8)


def constant_value(graph: FusedGraph, name: str) -> np.ndarray:
    """The logical value of a constant, or of a view of one. Raises GapFuseError for a buffer that is computed."""
    storage = graph.storage(name)
    root = graph.buffer[storage.root]
    if root.data is None:
        raise GapFuseError(f"the buffer `{name}` is packed as a constant but is computed")
    flat = np.ascontiguousarray(root.data.transpose(root.storage_order)).ravel()
    strides = tuple(s * flat.itemsize for s in storage.strides)
    return np.lib.stride_tricks.as_strided(flat[storage.offset :], storage.shape, strides)
