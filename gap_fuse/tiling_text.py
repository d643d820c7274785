"""The document of `gap-fuse tile` as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fusion_engine.diagnostics import counted
from gap_fuse.report import summary

Document = Mapping[str, Any]

HEADS = (
    "call",
    "kernel",
    "tiles",
    "L2<->L1 B",
    "bound B",
    "transfers",
    "L3<->L2 B",
    "computing",
    "hidden",
    "exposed",
    "L1 B",
    "binds",
)
PARETO = 16  # lines of a Pareto set
POINT = ("L1 B", "cycles", "bytes", "transfers", "implementation")
KEYS = ("l1", "cycles", "bytes", "transfers")


def tiling_text(document: Document) -> str:
    """A table of calls by group, the totals, what binds and what more memory buys."""
    tiling = document["tiling"]
    parts = [
        _table(_used([HEADS, *_rows(document)], document)),
        summary(document),
        *_bounds(document),
        *_worth(tiling),
        *_smallest(document),
        *(line for shown in tiling["shown"] for line in _shown(document, shown)),
    ]
    return "\n".join(parts)


def _rows(document: Document) -> list[tuple[str, ...]]:
    calls = {c["name"]: c for c in document["calls"]}
    rows: list[tuple[str, ...]] = []
    for group in document["groups"]:
        fused = len(group["calls"]) > 1
        rows.extend(_row(document, calls[name], "  " if fused else "") for name in group["calls"])
        if fused:
            count = len(group["stay"])
            title = f"= {count} {'stays' if count == 1 else 'stay'} in L1"
            rows.append(_total(title, document, group["calls"], group))
    return rows


def _used(rows: Sequence[tuple[str, ...]], document: Document) -> list[tuple[str, ...]]:
    """Without the column of L3 where a run moves nothing to or from it."""
    if document["hops"]["l3_l2"]["bytes"]:
        return list(rows)
    at = HEADS.index("L3<->L2 B")
    return [row[:at] + row[at + 1 :] for row in rows]


def _row(document: Document, call: Document, indent: str) -> tuple[str, ...]:
    moved = document["tiling"]["moved_cycles"][call["name"]]
    return (
        indent + call["name"],
        call["implementation"],
        f"{call['tiles']:,}",
        f"{call['bytes'].get('l2_l1', 0):,}",
        f"{call['bound_bytes']['l2_l1']:,}",
        f"{call['transfers'].get('l2_l1', 0):,}",
        f"{document['tiling']['l3_bytes'][call['name']]:,}",
        f"{call['cycles']['compute']:,}",
        f"{moved['hidden']:,}",
        f"{moved['exposed']:,}",
        f"{call['l1_bytes']:,}",
        document["tiling"]["binds"][call["name"]],
    )


def _total(title: str, document: Document, names: Sequence[str], group: Document) -> tuple[str, ...]:
    moved = [document["tiling"]["moved_cycles"][n] for n in names]
    return (
        title,
        "",
        f"{group['tiles']:,}",
        f"{group['bytes']['l2_l1']:,}",
        f"{group['bound_bytes']['l2_l1']:,}",
        f"{group['transfers']['l2_l1']:,}",
        f"{sum(document['tiling']['l3_bytes'][n] for n in names):,}",
        f"{group['cycles']['compute']:,}",
        f"{sum(m['hidden'] for m in moved):,}",
        f"{sum(m['exposed'] for m in moved):,}",
        f"{group['l1_bytes']:,}",
        f"{group['bytes']['l2_l1'] / max(group['bound_bytes']['l2_l1'], 1):.2f}x bound",
    )


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    words = (0, 1, len(widths) - 1)
    lines = []
    for row in rows:
        cells = [
            cell.ljust(w) if i in words else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def _bounds(document: Document) -> list[str]:
    bounds, ratios = document["bounds"], document["tiling"]["ratios"]
    return [
        f"  bounds    {bounds['fused_bytes']:,} B fully fused ({ratios['fused']:.2f}x), "
        f"{bounds['bytes_per_call']:,} B every tensor once per call ({ratios['once_per_call']:.2f}x)",
        f"            {bounds['compute_cycles']:,} cycles of computing ({ratios['compute']:.3f}x), "
        f"{bounds['live_bytes']:,} B live at most, "
        f"{bounds['kept_bytes']:,} B in L2 at least {_kept(document)}",
    ]


def _kept(document: Document) -> str:
    least, there = document["bounds"]["kept_bytes"], document["activations"]
    more = "some lie in L3" if there < least else f"{there / max(least, 1):.2f}x"
    reached = "reached" if there == least else more
    proven = document["tiling"]["minimise"] == "l2" and document["gap"] is not None
    what = "whatever stays or rolls" if proven else "inputs and outputs alone"
    return f"({what}: {reached})"


def _worth(tiling: Document) -> list[str]:
    return [
        _difference("+1 kB L1", tiling["more_l1"]),
        _difference("vast L1", tiling["unlimited_l1"]),
    ]


def _difference(title: str, change: Document) -> str:
    if "refused" in change:
        return f"  {title:9} no plan with it: {change['refused']}"
    if not change["cycles"] and not change["bytes"]:
        return f"  {title:9} buys nothing"
    more = change["stay"]
    stay = f", {more:+d} {'tensor that stays' if abs(more) == 1 else 'tensors that stay'}" if more else ""
    return f"  {title:9} {change['cycles']:+,} cycles, {change['bytes']:+,} B between L2 and L1{stay}"


def _smallest(document: Document) -> list[str]:
    smallest = document["tiling"]["smallest"]
    l2 = f", L2 {smallest['l2']:,} B with this L1" if "l2" in smallest else ""
    return [f"  smallest  L1 {smallest['l1']:,} B{l2}"]


def _shown(document: Document, shown: Document) -> list[str]:
    call = next(c for c in document["calls"] if c["name"] == shown["call"])
    loops = ", ".join(_loop(x) for x in call["loops"]) or "one tile"
    return [
        "",
        f"{call['name']}: {call['kernel']}, {call['implementation']}; nodes {', '.join(call['nodes'])}",
        f"  tiles     {loops}",
        *_trailing(call["trailing"]),
        *(f"  together  {', '.join(names)}: one command brings a tile of each" for names in call["together"]),
        *(f"  through L2 {_stage(x)}" for x in call["stages"]),
        *(f"  note      {n}" for n in call["notes"]),
        *_pareto(shown),
    ]


def _pareto(shown: Document) -> list[str]:
    """The set thinned out, with a row of its own for the tiling chosen."""
    points, chosen = shown["pareto"], shown["chosen"]
    others = [p for p in points if any(p[k] != chosen[k] for k in p if k != "cycles")]
    step = max(1, -(-len(others) // PARETO))
    kept = sorted([*others[::step], *others[-1:][: (len(others) - 1) % step], chosen], key=lambda p: p["l1"])
    rows = [(*POINT, "")]
    rows += [(*(f"{p[k]:,}" for k in KEYS), p["implementation"], _mark(shown) if p is chosen else "") for p in kept]
    widths = [max(len(r[i]) for r in rows) for i in range(len(POINT))]
    lines = ("  ".join([*(c.rjust(w) for c, w in zip(r, widths, strict=False)), r[-1]]) for r in rows)
    return [
        f"  Pareto set, {_places(shown['places'])} "
        f"({counted(len(points), 'tiling')} that nothing beats, {len(kept)} shown):",
        *("    " + line.rstrip() for line in lines),
    ]


def _places(places: Mapping[str, str]) -> str:
    """Where the operands lie while the tilings are compared; rolled groups are compared as calls of their own."""
    if "rows in L1" in places.values():
        return "were the call not rolled, operands in L2"
    apart = {level: [n for n, v in places.items() if v == level] for level in ("L1", "L3")}
    how = {"L1": "", "L3": ", tile by tile"}
    named = [f"{', '.join(names)} in {level}{how[level]}" for level, names in apart.items() if names]
    return "; ".join([*named, "the rest in L2"]) if named else "operands in L2"


def _mark(shown: Document) -> str:
    if "rows in L1" in shown["places"].values():
        return "<- chosen: rows, in its group"
    early = ", ".join(shown["early"])
    return f"<- chosen; the call before starts the first copy of {early}" if early else "<- chosen"


def _loop(loop: Document) -> str:
    direction = ", from the last tile to the first" if loop["down"] else ""
    return f"{loop['axis']} {loop['tile']} of {loop['extent']}{direction}"


def _stage(stage: Document) -> str:
    """The L2 tile of an operand in L3."""
    sizes = ", ".join(f"{axis} {n}" for axis, n in stage["tiles"].items()) or "whole"
    turns = " in two halves that take turns" if stage["halves"] > 1 else ""
    moved, commands = stage["bytes"], stage["transfers"]
    return (
        f"{stage['operand']}: {sizes}, {stage['l2_bytes']:,} B{turns}; L3 {moved['l3_l2']:,} B in "
        f"{counted(commands['l3_l2'], 'command')}, L1 {moved['l2_l1']:,} B in tiles of {stage['l1_bytes']:,}"
    )


def _trailing(trailing: Document | None) -> list[str]:
    if trailing is None:
        return []
    x, y, common = trailing["input"], trailing["result"], trailing["bytes"]
    return [f"  overlap   {y} lies over {common:,} B of {x} in L1: each tile overwrites only what no tile still reads"]
