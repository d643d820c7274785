"""network.c: the calls in order, whole-buffer transfers between them, inputs in, outputs out; the generated headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.graph import FusedGraph
from tiler.emit.ahead import ahead_text
from tiler.emit.calls import call_text
from tiler.emit.ctext import Lines, c_string, comment
from tiler.emit.fetches import fetch_line, fetch_text, fetches
from tiler.emit.rolls import roll_name, roll_text
from tiler.emit.unit import CallUnit
from tiler.schedule import Roll, Schedule, Transfer
from tiler.target import Target

BOX_DIMS = 8  # GF_BOX_DIMS of gf_runtime.h


def config_header(schedule: Schedule, target: Target) -> str:
    """gf_config.h: memory sizes, cores, limits of the hops, names of the calls."""
    names = ", ".join(c_string(c.call) for c in schedule.calls) or '""'
    limits = ", ".join(
        f"{{{hop.max_bytes}u, {hop.max_stride}u, 2}}" for hop in (target.hops["l2_l1"], target.hops["l3_l2"])
    )
    stays = ", ".join(f"{{{s.offset}, {s.bytes}, {s.first}, {s.last}}}" for s in schedule.stays) or "{0, 0, 0, -1}"
    in_flight = ", ".join(str(target.hops[hop].in_flight) for hop in ("l2_l1", "l3_l2"))
    early = ", ".join(f"{{{at}, {size}, {call - 1}, {call}}}" for at, size, call in _early(schedule)) or "{0, 0, 0, -1}"
    rolls = ", ".join(f"{{{r.first}, {r.last}}}" for r in schedule.rolls) or "{0, -1}"
    sizes = [f"#define GF_{level.upper()}_BYTES {_room(schedule, target, level)}" for level in ("l1", "l2")]
    deep = _room(schedule, target, "l3")
    return "\n".join(
        [
            "/* Generated: what the runtime and the port need to know of the plan and the target. */",
            "#ifndef GF_CONFIG_H",
            "#define GF_CONFIG_H",
            *sizes,
            *_deep_sizes(schedule, deep),
            f"#define GF_CORES {target.cores}",
            f"#define GF_CALLS {len(schedule.calls)}",
            f"#define GF_CALL_NAMES {{{names}}}",
            f"#define GF_HOP_LIMITS {{{limits}}}",
            f"#define GF_HOP_IN_FLIGHT {{{in_flight}}} /* commands that a hop's engine holds at once */",
            f"#define GF_STAYS {{{stays}}} /* tensors that stay in L1: first byte, bytes, first and last call */",
            f"#define GF_AHEAD {{{early}}} /* tiles started by one call for the next: first byte, bytes, calls */",
            f"#define GF_ROLLS {{{rolls}}} /* calls that take turns: first and last */",
            "#endif",
            "",
        ]
    )


def _early(schedule: Schedule) -> list[tuple[int, int, int]]:
    """What is started one call early: first byte, bytes, the call it is for."""
    early = [(i, o) for i, call in enumerate(schedule.calls) for o in call.operands if o.ahead and not o.joined]
    return [(o.l1[0], o.span or o.tile_bytes, i) for i, o in early]


def _deep_sizes(schedule: Schedule, deep: int) -> list[str]:
    """L3, with room for what a trace keeps there of tensors that only exist by rows."""
    kept = shadows(schedule)
    if not kept:
        return [f"#define GF_L3_BYTES {deep}"]
    end = max(kept[r.root] + r.height * r.row_bytes for roll in schedule.rolls for r in roll.rings)
    return ["#ifdef GF_TRACE", f"#define GF_L3_BYTES {end}", "#else", f"#define GF_L3_BYTES {deep}", "#endif"]


def _room(schedule: Schedule, target: Target, level: str) -> int:
    """Bytes that the plan touches: a step beyond them is an error that the host port and the sanitizers see."""
    return max(schedule.peaks.get(level, target.budget(level)), 16)


def network_header(graph: FusedGraph) -> str:
    """network.h: the three calls an application makes."""
    ports = [*_port_lines("in", graph, graph.inputs), *_port_lines("out", graph, graph.outputs)]
    return "\n".join(
        [
            *comment([f"{graph.name}: gf_open once, gf_run per inference, gf_close. Tensors are row-major.", *ports]),
            "#ifndef GF_NETWORK_H",
            "#define GF_NETWORK_H",
            '#include "gf_runtime.h"',
            "",
            f"enum {{ GF_INPUTS = {len(graph.inputs)}, GF_OUTPUTS = {len(graph.outputs)} }};",
            f"enum {{ GF_RESULTS = {_result_count(graph)} }};",
            "",
            "int gf_open(void); /* 0, or an error number of the port */",
            "int gf_run(const void *const in[], void *const out[]);",
            "void gf_close(void);",
            "",
            "/* Where inputs and outputs lie; for whoever traces, the results of each call in order too. */",
            "extern const gf_tensor gf_inputs[], gf_outputs[];",
            "#ifdef GF_TRACE",
            "extern const gf_tensor gf_results[];",
            "extern const int32_t gf_result_calls[];",
            "void gf_after_call(int call); /* provided by whoever traces */",
            "#endif",
            "#endif",
            "",
        ]
    )


def _port_lines(kind: str, graph: FusedGraph, names: Sequence[str]) -> list[str]:
    return [f"{kind}[{i}]: {n}, {graph.buffer[n].dtype} {list(graph.buffer[n].shape)}" for i, n in enumerate(names)]


def _result_count(graph: FusedGraph) -> int:
    return sum(len(c.results) for c in graph.calls)


def network_source(graph: FusedGraph, schedule: Schedule, units: Sequence[CallUnit]) -> str:
    """network.c. Every call a static function, then gf_open, gf_run, gf_close."""
    title = f"{schedule.network} for {schedule.target}, written by gap-fuse. The plan is in report.json."
    headers = sorted({f'#include "{u.symbol}_args.h"' for u in units})
    parts = [
        "\n".join([*comment([title]), '#include "network.h"', *headers, ""]),
        *([fetch_text(schedule)] if fetches(schedule) else []),
        *_texts(schedule, units),
        _tensors(graph, schedule),
        _open(schedule),
        _run(schedule, units),
        "void gf_close(void) { gf_port_close(); }\n",
    ]
    return "\n".join(parts)


def _texts(schedule: Schedule, units: Sequence[CallUnit]) -> list[str]:
    texts, i = [_SHADOW] if schedule.rolls else [], 0
    while i < len(units):
        roll = _roll_at(schedule, i)
        if roll is None:
            following = units[i + 1] if i + 1 < len(units) else None
            early = ahead_text(following) if following is not None else ""
            texts += [early] * bool(early) + [call_text(units[i], following)]
        else:
            texts.append(roll_text(roll, units[i : roll.last + 1], shadows(schedule)))
        i = i + 1 if roll is None else roll.last + 1
    return texts


def _roll_at(schedule: Schedule, call: int) -> Roll | None:
    return next((r for r in schedule.rolls if r.first == call), None)


_SHADOW = """\
/* A trace keeps rows that the network forgets. */
#ifdef GF_TRACE
#define GF_SHADOW(at, rows, from, to, bytes) \\
  gf_put(GF_LEVEL_L3, GF_L3((at) + (from) * (bytes)), rows, (uint32_t)(((to) - (from)) * (bytes)))
#else
#define GF_SHADOW(at, rows, from, to, bytes) ((void)0)
#endif
"""


def shadows(schedule: Schedule) -> dict[str, int]:
    """Where a trace keeps the whole of each tensor that only exists by rows: behind the plan's L3."""
    at, result = -(-schedule.peaks["l3"] // 16) * 16, {}
    for r in (ring for roll in schedule.rolls for ring in roll.rings):
        result[r.root] = at
        at += -(-r.height * r.row_bytes // 16) * 16
    return result


# ---- tensors ----


def _tensors(graph: FusedGraph, schedule: Schedule) -> str:
    homes = _homes(schedule)
    results = [(i, name) for i, call in enumerate(graph.calls) for _, name in call.results]
    out = Lines()
    _table(out, graph, homes, "gf_inputs", graph.inputs)
    _table(out, graph, homes, "gf_outputs", graph.outputs)
    out.add("#ifdef GF_TRACE")
    _table(out, graph, homes, "gf_results", [name for _, name in results])
    calls = ", ".join(str(i) for i, _ in results) or "0"
    out.add(f"const int32_t gf_result_calls[] = {{{calls}}};", "#endif")
    return str(out)


def _homes(schedule: Schedule) -> Mapping[str, tuple[str, int]]:
    """Root buffer to its level and byte offset."""
    packed = {c.name: ("L3", c.cold) for c in schedule.constants}
    deep = {root: ("L3", at) for root, at in schedule.l3_homes.items()}
    constants = {c.name for c in schedule.constants}
    near = {r.root: ("L2", r.offset) for r in schedule.residencies if r.root not in constants}
    stays = {r.root: ("L1", r.offset) for r in schedule.stays}
    rows = {root: ("L3", at) for root, at in shadows(schedule).items()}
    return packed | deep | near | stays | rows


def _table(
    out: Lines, graph: FusedGraph, homes: Mapping[str, tuple[str, int]], name: str, buffers: Sequence[str]
) -> None:
    out.open(f"const gf_tensor {name}[] =")
    for b in buffers:
        out.add(_tensor(graph, homes, b) + ",")
    if not buffers:
        out.add("{0}")
    out.close(";")


def _tensor(graph: FusedGraph, homes: Mapping[str, tuple[str, int]], name: str) -> str:
    buffer, storage = graph.buffer[name], graph.storage(name)
    if len(buffer.shape) > BOX_DIMS:
        raise GapFuseError(f"`{name}` has {len(buffer.shape)} axes, the runtime's tensors {BOX_DIMS} at most")
    if storage.root not in homes:  # nothing reads it
        return f"{{{c_string(name)}, GF_LEVEL_L2, 0, {buffer.itemsize}, 1, {{0}}, {{0}}, {buffer.nbytes}}}"
    level, at = homes[storage.root]
    item = buffer.itemsize
    extents = ", ".join(map(str, buffer.shape)) or "1"
    pitches = ", ".join(str(s * item) for s in storage.strides) or str(item)
    place = f"GF_LEVEL_{level}, {at + storage.offset * item}"
    shape = f"{max(len(buffer.shape), 1)}, {{{extents}}}, {{{pitches}}}"
    return f"{{{c_string(name)}, {place}, {item}, {shape}, {buffer.nbytes}}}"


# ---- open and run ----


def image_bytes(schedule: Schedule) -> int:
    """Bytes of the weight image in L3."""
    return max((c.cold + c.bytes for c in schedule.constants), default=0)


def _open(schedule: Schedule) -> str:
    opening = [t for t in schedule.transfers if t.start < 0]
    out = Lines()
    out.open("int gf_open(void)")
    out.add("int error = gf_port_open();")
    out.add(f"if (!error) error = gf_load_weights(GF_L3(0), {image_bytes(schedule)});")
    out.add("if (error) return error;")
    if opening:
        out.add("gf_ticket resident = {0};", "gf_call_begin(GF_OPENING);")
        out.add(*(_transfer(t, "resident") for t in opening))
        out.add("gf_copy_wait(&resident);")
    out.add("return 0;")
    out.close()
    return str(out)


def _transfer(t: Transfer, ticket: str) -> str:
    where = f"GF_L3({t.l3}), GF_L2_NEAR({t.l2}), {t.bytes}"
    return f"gf_copy_bytes(GF_L3_L2, GF_IN, {where}, &{ticket}); {comment(t.roots, 4096)[0]}"


def _run(schedule: Schedule, units: Sequence[CallUnit]) -> str:
    out = Lines()
    out.open("int gf_run(const void *const in[], void *const out[])")
    if fetches(schedule):
        out.add("fetch_started = fetch_arrived = 0;")
    out.add("for (int i = 0; i < GF_INPUTS; i++) gf_import(&gf_inputs[i], in[i]);")
    i, done = 0, (0, 0)
    while i < len(units):
        roll = _roll_at(schedule, i)
        last = i if roll is None else roll.last
        counts = units[i].fetches[0]
        if counts != done:
            out.add("gf_call_begin(GF_BETWEEN);", fetch_line(counts))
        if roll is None:
            out.add(f"GF_CALL({i}, run_{units[i].name});")
        else:
            out.add(f"{roll_name(units[i : last + 1])}();", *(f"GF_ROLLED({j});" for j in range(i, last + 1)))
        done = units[i].fetches[-1]
        i = last + 1
    out.add("for (int i = 0; i < GF_OUTPUTS; i++) gf_export(&gf_outputs[i], out[i]);", "return 0;")
    out.close()
    return _TRACE + str(out)


_TRACE = """\
#ifdef GF_TRACE
#define GF_CALL(i, run) (gf_call_begin(i), run(), gf_after_call(i))
#define GF_ROLLED(i) gf_after_call(i)
#else
#define GF_CALL(i, run) (gf_call_begin(i), run())
#define GF_ROLLED(i) ((void)0)
#endif

"""
