"""Constants that pass through L2 as C: one list of what is fetched from L3, and at each step of the calls how many of
them have been started and how many must have arrived.
"""

from __future__ import annotations

from collections.abc import Sequence

from tiler.emit.ctext import Lines, comment
from tiler.schedule import Schedule, Transfer

Counts = tuple[int, int]  # fetches started, fetches arrived


def fetches(schedule: Schedule) -> tuple[Transfer, ...]:
    """What every run fetches, in the order of the starts."""
    return tuple(t for t in schedule.transfers if t.start >= 0)


def counts_at(schedule: Schedule, call: int, steps: int) -> tuple[Counts, ...]:
    """Before each of `steps` steps of a call (or of the rolled group that it begins)."""
    moving = fetches(schedule)
    return tuple(
        (
            sum((t.start, t.start_step) <= (call, step) for t in moving),
            sum((t.wait, t.wait_step) <= (call, step) for t in moving),
        )
        for step in range(steps)
    )


def fetch_line(counts: Counts) -> str:
    return f"fetch({counts[0]}, {counts[1]});"


def steps_table(name: str, steps: Sequence[Counts]) -> list[str]:
    """The table of one call that fetches while it runs; nothing where it does not."""
    if len(set(steps)) < 2:
        return []
    rows = ", ".join(f"{{{a}, {b}}}" for a, b in steps)
    return [
        f"/* {name}, at each step: fetches started, fetches arrived. */",
        *_folded(f"static const uint16_t {table_name(name)}[][2] = {{", rows),
    ]


def places_table(name: str, operand: str, places: Sequence[int]) -> list[str]:
    """Where an operand would begin in L2, at each step."""
    return _folded(f"static const int32_t {places_name(name, operand)}[] = {{", ", ".join(map(str, places)))


def table_name(name: str) -> str:
    return f"fetches_{name}"


def places_name(name: str, operand: str) -> str:
    return f"places_{name}_{operand}"


def _folded(head: str, items: str) -> list[str]:
    lines, line = [], head
    for item in items.split(", "):
        if len(line) + len(item) > 116:
            lines.append(line.rstrip())
            line = "  "
        line += f"{item}, "
    return [*lines, line.rstrip(", ") + "};"]


def fetch_text(schedule: Schedule) -> str:
    """The list, and `fetch`, which goes on along it; nothing where every constant stays in L2."""
    moving = fetches(schedule)
    if not moving:
        return ""
    out = Lines()
    out.add("/* What comes from L3 in every run, in the order of the starts; steps count a call's outermost loop. */")
    out.open("static const struct")
    out.add("uint32_t l3, l2;", "int32_t bytes;")
    out.depth -= 1
    out.open("} fetch_list[] =")
    for n, t in enumerate(moving):
        out.add(f"{{{t.l3}, {t.l2}, {t.bytes}}}, {_remark(schedule, n, t)}")
    out.close(";")
    tickets = schedule.tables.tickets
    out.add(f"static gf_ticket fetch_tickets[{tickets}]; /* as many are under way at once */")
    out.add("static int32_t fetch_started, fetch_arrived;", "")
    out.add(*comment(["Starts the fetches before number `start` that are not started yet, and waits for those before",
                      "`arrive`."]))  # fmt: skip
    out.open("static void fetch(int32_t start, int32_t arrive)")
    out.open("for (; fetch_started < start; fetch_started++)")
    at = "fetch_list[fetch_started]"
    out.add(f"gf_copy_bytes(GF_L3_L2, GF_IN, GF_L3({at}.l3), GF_L2_NEAR({at}.l2), {at}.bytes,")
    out.add(f"              &fetch_tickets[fetch_started % {tickets}]);")
    out.close()
    out.add(f"for (; fetch_arrived < arrive; fetch_arrived++) gf_copy_wait(&fetch_tickets[fetch_arrived % {tickets}]);")
    out.close()
    return str(out)


def _remark(schedule: Schedule, number: int, t: Transfer) -> str:
    carried = t.roots[0] if len(t.roots) == 1 else f"{t.roots[0]} to {t.roots[-1]} ({len(t.roots)})"
    start, wait = _when(schedule, t.start, t.start_step), _when(schedule, t.wait, t.wait_step)
    when = f"at {start}" if start == wait else f"at {start}, for {wait}"
    return comment([f"{number}: {carried}; {when}"], 4096)[0]


def _when(schedule: Schedule, call: int, step: int) -> str:
    return schedule.calls[call].call + (f" step {step}" if step else "")
