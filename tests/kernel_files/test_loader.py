"""kernel.yaml: what loads, and where each mistake is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.expr import evaluate, parse_expr
from fusion_engine.kernels import load_kernels, reference, solve_sizes
from fusion_engine.kernels.descriptor import Kernel

CONV = """
kernel: conv
summary: a convolution
signature:
  inputs: {x: "int8[N, C, H, W]", weight: "const int8[K, CG, R, S]", bias: "const int32[K] | none"}
  outputs: {y: "int8[N, K, P, Q]"}
  attrs: {groups: int = 1, strides: "int[2] = [1, 1]", pads: "int[4] = [0, 0, 0, 0]", lo: float = -inf}
  sizes:
    CG: C // groups
    KG: K // groups
    P: (H + pads[0] + pads[2] - R) // strides[0] + 1
    Q: (W + pads[1] + pads[3] - S) // strides[1] + 1
  where: [C % groups == 0, K % groups == 0]
semantics: reference.py:conv
axes: {n: N, g: groups, k: KG, p: P, q: Q, c: CG, r: R, s: S}
access: |
  x[n, g*CG + c, p*strides[0] + r - pads[0], q*strides[1] + s - pads[1]]
  weight[g*KG + k, c, r, s]
  bias[g*KG + k]
  y[n, g*KG + k, p, q]
outside: {x: {do: border, value: 0}}
implementations:
- name: portable
  source: conv.c
  symbol: gf_conv
  orders: {x: n h w c, y: n p q k, weight: k/16 r s cg k%16}
  whole: [r, s]
  tile: {k: {step: 4, max: 8}}
  align: {x: 4}
  scratch: [{name: im2col, bytes: "2 * align(r * s * x_h, 4)", per: core}]
  when: [groups == 1]
  accumulate: {acc: {type: int32, index: [n, g*KG + k, p, q], over: [c]}}
  reads_at: {bias: first}
  team: p
  cycles: 200 + ceil(p / cores) * q * k * r * s * c
"""

ADD = """
kernel: add
signature:
  inputs: {a: "T[*A]", b: "T[*B]"}
  outputs: {y: "T[*Y]"}
  sizes: {"*Y": "broadcast(A, B)"}
dtypes: {T: [float32, int8]}
semantics: reference.py:add
axes: {i: "*Y"}
access: |
  a[i]
  b[i]
  y[i]
implementations:
- {name: any, source: conv.c, symbol: gf_add, orders: same, rank: 4, team: i0, cycles: "40 + i0 * i1 * i2 * i3"}
---
kernel: join
signature: {inputs: {x: "T[*L, A, *R] ..."}, outputs: {y: "T[*L, B, *R]"}, attrs: {axis: int}, sizes: {B: sum(A)}}
dtypes: {T: [float32, int8]}
view: concat
"""


def write(folder: Path, text: str, name: str = "one") -> Path:
    here = folder / name
    here.mkdir(parents=True, exist_ok=True)
    (here / "kernel.yaml").write_text(text)
    (here / "reference.py").write_text(
        "def conv(x, weight, bias=None):\n    return x\n\n\ndef add(a, b):\n    return a + b\n"
    )
    (here / "conv.c").write_text("/* C */")
    return folder


def load(folder: Path, text: str) -> dict[str, Kernel]:
    return dict(load_kernels([write(folder, text)]))


def failure(folder: Path, text: str) -> GapFuseError:
    with pytest.raises(GapFuseError) as caught:
        load(folder, text)
    return caught.value


def test_a_full_descriptor_loads(tmp_path: Path) -> None:
    conv = load(tmp_path, CONV)["conv"]
    (impl,) = conv.implementations
    assert impl.orders["weight"] == ("k/16", "r", "s", "cg", "k%16")
    assert impl.orders["x"] == ("n", "h", "w", "c")
    assert impl.accumulate is not None
    assert impl.accumulate.over == ("c",)
    assert [a.operand for a in conv.access] == ["x", "weight", "bias", "y"]
    assert conv.attrs[3].default == float("-inf")


def test_sizes_of_a_convolution(tmp_path: Path) -> None:
    conv = load(tmp_path, CONV)["conv"]
    solved = solve_sizes(
        conv, {"x": (1, 4, 8, 9), "weight": (6, 2, 3, 3)}, {"x": "int8"}, {"groups": 2, "pads": (1, 1, 1, 1)}
    )
    assert not isinstance(solved, str)
    assert solved.shapes == {"y": (1, 6, 8, 9)}
    assert solved.sizes["KG"] == 3
    assert solved.attrs["strides"] == (1, 1)


@pytest.mark.parametrize(
    ("shapes", "dtypes", "attrs", "words"),
    [
        ({"x": (1, 4, 8, 8), "weight": (6, 4, 3, 3)}, {}, {"groups": 3}, "CG is 4, but must be 1"),
        ({"x": (1, 4, 8), "weight": (6, 4, 3, 3)}, {}, {}, "rank 3"),
        ({"x": (1, 4, 8, 8)}, {}, {}, "weight is missing"),
        ({"x": (1, 4, 8, 8), "weight": (6, 4, 3, 3)}, {"x": "uint8"}, {}, "int8, not uint8"),
        ({"x": (1, 4, 2, 2), "weight": (6, 4, 5, 5)}, {}, {}, "would be -2"),
        ({"x": (1, 4, 8, 8), "weight": (6, 4, 3, 3)}, {}, {"pads": (1,)}, "1 element, not 4"),
        ({"x": (1, 4, 8, 8), "weight": (6, 4, 3, 3), "bias": (5,)}, {}, {}, "K is 6 elsewhere, but 5"),
    ],
)
def test_a_misfit_says_why(tmp_path: Path, shapes: dict, dtypes: dict, attrs: dict, words: str) -> None:
    reason = solve_sizes(load(tmp_path, CONV)["conv"], shapes, dtypes, attrs)
    assert isinstance(reason, str)
    assert words in reason


def test_groups_broadcast_and_variadic_parts_join(tmp_path: Path) -> None:
    kernels = load(tmp_path, ADD)
    added = solve_sizes(kernels["add"], {"a": (2, 1, 3), "b": (4, 1)}, {"a": "int8", "b": "int8"}, {})
    assert not isinstance(added, str)
    assert (added.shapes["y"], added.dtypes["y"]) == ((2, 4, 3), "int8")
    joined = solve_sizes(kernels["join"], {"x0": (2, 3, 5), "x1": (2, 4, 5)}, {"x0": "int8", "x1": "int8"}, {"axis": 1})
    assert not isinstance(joined, str)
    assert joined.shapes["y"] == (2, 7, 5)
    equal = solve_sizes(kernels["join"], {"x0": (2, 3, 5), "x1": (2, 3, 5)}, {}, {"axis": 1})
    assert not isinstance(equal, str)
    assert equal.shapes["y"] == (2, 6, 5)
    assert "broadcast" in str(solve_sizes(kernels["add"], {"a": (2,), "b": (3,)}, {}, {}))
    assert "elsewhere" in str(solve_sizes(kernels["join"], {"x0": (2, 3), "x1": (3, 3)}, {}, {"axis": 1}))
    assert kernels["add"].implementations[0].orders == {"a": "any", "b": "same:a", "y": "same:a"}


GROUP = """
kernel: conv
summary: Any shape.
signature:
  inputs: {x: "float32[*S]"}
  outputs: {y: "float32[*S]"}
axes: {i: "*S"}
access: |
  x[i]
  y[i]
implementations:
- {name: portable, source: conv.c, symbol: conv, rank: 1, orders: same, team: i, cycles: 20 + i}
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("summary:", "sumary:", "did you mean `summary`?"),
        ("C // groups", "C // group", "did you mean `groups`?"),
        ("C // groups", "C // (groups", "not an expression"),
        ("int8[N, C, H, W]", "int8[N, C, h, W]", "`h` is not a dimension"),
        ("weight[g*KG + k, c, r, s]", "weight[g*KG + k, c, r]", "4 dims, its access 3"),
        ("weight[g*KG + k, c, r, s]", "weight[g*KG + k, c % 2, r, s]", "need not be monotone"),
        ("weight[g*KG + k, c, r, s]", "weight[g*KG + k, c, r + r, s]", "uses the axis r twice"),
        ("  bias[g*KG + k]\n", "", "no access says how `bias`"),
        ("x: n h w c,", "x: n h w,", "is not an order of `x`"),
        ("y: n p q k,", "y: n p q k/4 k%4,", "cannot have blocks"),
        ("source: conv.c", "source: none.c", "there is no file none.c"),
        ("reference.py:conv", "reference.py:convolve", "defines no function"),
        ("whole: [r, s]", "whole: [r, z]", "`z` is unknown in whole"),
        ("team: p", "team: ps", "`ps` is unknown in team"),
        ("align: {x: 4}", "align: {x: 3}", "power of two"),
        ("align: {x: 4}", "align: {x: 64}", "above 16 is not supported yet"),
        ("do: border", "do: boarder", "did you mean `border`?"),
        ("groups: int = 1", "groups: integer = 1", "is not an attribute type"),
        ("strides: \"int[2] = [1, 1]\"", "strides: \"int[2] = [1]\"", "has 1 element"),
        ("kernel: conv\n", "kernel: Conv!\n", "is not a kernel name"),
        ("accumulate: {acc:", "carry: {h: {type: int32, index: [n], over: [t]}}\n  accumulate: {acc:", "not both"),
        ("over: [c]", "over: [zz]", "`zz` is unknown in accumulate"),
        ("implementations:", "frame: {of: xs, fill: f}\nimplementations:", "`xs` is no input"),
        ("implementations:", "frame: {of: x, fill: f}\nimplementations:", "has the attribute `value`"),
        ("\nsemantics", "\nkernel: again\nsemantics", "is there twice"),
    ],
)  # fmt: skip
def test_each_mistake_is_reported_at_its_place(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in CONV
    error = failure(tmp_path, CONV.replace(old, new, 1))
    assert words in str(error)
    assert all(d.span is not None and d.span.line for d in error.diagnostics)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('{i: "*S"}', "{i: S}", 'write "*S"'),
        ("x[i]", "x[i + 1]", "is not an axis alone"),
        ("rank: 1, ", "", "states no `rank`"),
        ("orders: same", "orders: any", "that is `same`"),
    ],
)
def test_mistakes_about_groups(tmp_path: Path, old: str, new: str, words: str) -> None:
    """They passed `rules check`; the first was a traceback in `kernels test`."""
    assert old in GROUP
    assert words in str(failure(tmp_path, GROUP.replace(old, new, 1)))


def test_the_caret_stands_under_the_guilty_part_of_a_block(tmp_path: Path) -> None:
    error = failure(tmp_path, CONV.replace("bias[g*KG + k]", "bias[g*KG + nope(k)]"))
    (found,) = error.diagnostics
    assert found.span is not None
    assert found.source is not None
    assert found.source[found.span.col - 1 : found.span.end - 1] == "nope(k)"


def test_all_mistakes_at_once_and_later_directories_override(tmp_path: Path) -> None:
    bad = CONV.replace("team: p", "team: zz").replace("whole: [r, s]", "whole: [yy]")
    assert len(failure(tmp_path / "bad", bad).diagnostics) == 2
    first, second = write(tmp_path / "a", ADD), write(tmp_path / "b", CONV.replace("kernel: conv", "kernel: add"))
    merged = load_kernels([first, second])
    assert list(merged) == ["add", "join"]
    assert merged["add"].origin == str(second)
    assert merged.notes == (f"kernel add of {merged['add'].folder} overrides the one of {first / 'one'}",)


def test_the_reference_runs(tmp_path: Path) -> None:
    assert reference(load(tmp_path, ADD)["add"])(1, 2) == 3


def test_an_output_size_that_nothing_says(tmp_path: Path) -> None:
    error = failure(tmp_path, ADD.replace("T[*L, B, *R]", "T[*L, Z, *R]"))
    assert "nothing says what the size Z is" in str(error)


@pytest.mark.parametrize("perm", [(0, 0), (0, 2), (0,)])
def test_a_list_that_permutes_nothing_is_a_misfit(perm: tuple[int, ...]) -> None:
    """RNN with layout = 2, which inference lets pass, became a transposition with an axis twice and a traceback."""
    with pytest.raises(ValueError, match="no permutation of 2 axes"):
        evaluate(parse_expr("permute(A, perm)"), {"A": (2, 3), "perm": perm})


def test_every_shipped_reference_loads() -> None:
    """A function that moved took the pool's reference with it, which only the int8 example noticed."""
    kernels = load_kernels([Path(__file__).parents[2] / "kernels"])
    assert all(callable(reference(k)) for k in kernels.values() if k.semantics is not None)
