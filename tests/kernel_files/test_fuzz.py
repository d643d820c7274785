"""Whatever stands in a kernel.yaml or a graph file: a result, or an error that says where. Never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fusion_engine.diagnostics import Diagnostic, GapFuseError
from fusion_engine.graph_json import graph_from_json
from fusion_engine.kernels import load_kernels
from fusion_engine.kernels.loader import read_kernel
from fusion_engine.marked_yaml import parse_yaml
from tests.kernel_files.test_loader import ADD, CONV, write

ODD = [
    "[",
    "]",
    "{",
    "}",
    ":",
    ",",
    "*S",
    "int8[",
    "|",
    "none",
    "- ",
    "\t",
    "&a ",
    "*a",
    "null",
    "9" * 400,
    "any",
    "1e999",
]
WORDS = st.sampled_from([*ODD, "//", "\n", "0", "x"]) | st.text(max_size=6)


@st.composite
def broken(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from([CONV, ADD]))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(WORDS) + text[at + draw(st.integers(0, 12)) :]
    return text


@given(broken())
@example(CONV.replace("200 +", "1" + "+1" * 3000 + " +"))
@example(CONV.replace("g*KG + k, c, r, s", "g*KG + k, c, r, " + "(" * 150 + "s" + ")" * 150))
@example(CONV.replace("C // groups", "C // 0"))
@example(CONV.replace("orders: {", "orders: {a: any, "))
@example(CONV.replace("when: [groups == 1]", "when: {groups: 1}"))
def test_any_text_loads_or_says_where(text: str) -> None:
    problems = []
    folder = Path(__file__).parent
    try:
        for document in parse_yaml(text, "kernel.yaml"):
            if read_kernel(document, folder, "here", problems) is None:
                assert problems
    except GapFuseError as e:
        problems = list(e.diagnostics)
    assert all(p.span is not None for p in problems)
    assert all(str(p) for p in problems)


@given(st.binary(max_size=300))
def test_any_bytes_load_or_say_where(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    room = write(tmp_path_factory.mktemp("room"), "")
    (room / "one" / "kernel.yaml").write_bytes(raw)
    problems = problems_of(room)
    assert all(p.span is not None for p in problems)


def problems_of(room: Path) -> list[Diagnostic]:
    try:
        load_kernels([room])
    except GapFuseError as e:
        return list(e.diagnostics)
    return []


KEYS = st.sampled_from(["format", "name", "buffers", "calls"])
JSON = st.recursive(st.none() | st.integers(), lambda x: st.lists(x) | st.dictionaries(KEYS, x), max_leaves=8)


def graph_text(buffer: str) -> str:
    return f'{{"format": 1, "name": "n", "inputs": [], "outputs": [], "calls": [], "buffers": [{buffer}]}}'


@given(st.text(max_size=50) | JSON.map(json.dumps))
@example(graph_text('{"name": "a", "dtype": "zz", "shape": [1], "data": "AA=="}'))
@example(graph_text('{"name": "a", "dtype": "int8", "shape": [3], "data": "AA=="}'))
@example('{"format": 2}')
@example("[" * 5000)
def test_any_text_as_a_graph_file_is_refused_in_words(text: str) -> None:
    with pytest.raises(GapFuseError):
        graph_from_json(text)
