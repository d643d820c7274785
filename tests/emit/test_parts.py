"""Packing of constants, argument structs, names, literals, comments."""

from __future__ import annotations

import ctypes
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.kernels import load_kernels
from gap_fuse.proof.tiles.building import structure
from tests.conftest import ROOT
from tiler.emit.args import args_header, args_members
from tiler.emit.ctext import c_float, c_string, comment
from tiler.emit.pack import pack
from tiler.emit.unit import c_names


@given(st.integers(1, 9), st.integers(1, 5), st.integers(1, 4))
def test_blocks_are_padded_with_zeros(k: int, c: int, block: int) -> None:
    data = np.arange(1, k * c + 1, dtype=np.int32).reshape(k, c)
    packed = pack(data, ("k", "c"), (f"k/{block}", "c", f"k%{block}"))
    assert packed.shape == (-(-k // block), c, block)
    for b in range(packed.shape[0]):
        for i in range(block):
            row = data[b * block + i] if b * block + i < k else np.zeros(c)
            np.testing.assert_array_equal(packed[b, :, i], row)


@given(st.permutations(["k", "c", "r"]))
def test_orders_are_transpositions(order: list[str]) -> None:
    data = np.arange(24).reshape(2, 3, 4)
    packed = pack(data, ("k", "c", "r"), tuple(order))
    np.testing.assert_array_equal(packed, data.transpose([("k", "c", "r").index(o) for o in order]))
    assert packed.flags.c_contiguous


def test_an_order_of_other_dims_is_refused() -> None:
    with pytest.raises(GapFuseError, match="cannot be stored as k x"):
        pack(np.zeros((2, 3)), ("k", "c"), ("k", "x"))


def test_dims_of_extent_one_may_be_left_out() -> None:
    assert pack(np.zeros((2, 1, 3)), ("k", "g", "c"), ("c", "k")).shape == (3, 2)


def test_every_argument_struct_compiles_and_lies_as_ctypes_thinks(tmp_path: Path) -> None:
    """All shipped kernels: offsets of the generated struct, printed by C, equal those the harness fills."""
    lines, expected, includes = [], [], []
    for kernel in load_kernels([ROOT / "kernels"]).values():
        for implementation in kernel.implementations:
            variadic = 3 if any(o.variadic for o in kernel.inputs) else 0
            name = f"{implementation.symbol}_args"
            (tmp_path / f"{name}.h").write_text(args_header(kernel, implementation, variadic))
            includes.append(f'#include "{name}.h"')
            members = args_members(kernel, implementation, variadic)
            shape = structure(members)
            expected.append(ctypes.sizeof(shape))
            lines.append(f'printf("%zu\\n", sizeof({name}));')
            for m in members:
                expected.append(getattr(shape, m.name).offset)
                lines.append(f'printf("%zu\\n", offsetof({name}, {m.name}));')
    main = tmp_path / "main.c"
    body = "\n".join(lines)
    main.write_text("#include <stdio.h>\n" + "\n".join(dict.fromkeys(includes)) + f"\nint main(void) {{\n{body}\n}}\n")
    options = ["-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{tmp_path}", f"-I{ROOT / 'kernels' / 'common'}"]
    subprocess.run(["gcc", *options, str(main), "-o", str(tmp_path / "main")], check=True)
    printed = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=True).stdout
    assert [int(x) for x in printed.split()] == expected
    assert len(expected) > 500


@given(st.lists(st.text(min_size=1), unique=True, max_size=6))
def test_names_are_identifiers_and_different(names: list[str]) -> None:
    chosen = c_names(names)
    assert list(chosen) == names
    assert len(set(chosen.values())) == len(names)
    assert all(n.isascii() and f"run_{n}".isidentifier() for n in chosen.values())


@given(st.floats(width=32))
def test_float_literals_read_back(value: float) -> None:
    text = c_float(value).removesuffix("f")
    if "NAN" in text or "INFINITY" in text:
        return
    assert struct.pack("f", float(text)) == struct.pack("f", value)


@given(st.text())
def test_strings_and_comments_cannot_break_out(text: str) -> None:
    literal = c_string(text)
    assert literal.isascii()
    assert "\n" not in literal
    body = "\n".join(comment([text.replace("\n", " ")]))[2:-2]
    assert "*/" not in body
    assert "/*" not in body


def test_folded_lines_of_comments_stand_under_their_text() -> None:
    """The second half of an operand's line stood left of the operand's name."""
    words = " ".join(["word"] * 30)
    lines = comment([f"nodes {words}", f"  weight <- L2 + 8, {words}", f"  {words}"])
    assert [len(line) - len(line.lstrip(" ")) for line in lines] == [0, 3, 5, 15, 5, 5]
    assert all(len(line) <= 120 for line in lines)
    assert "".join("".join(lines).split()).count("word") == 90
