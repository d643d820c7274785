"""`rearrange` in patterns: chains of movement operators with one index map."""

from __future__ import annotations

import numpy as np
import pytest
from einops import rearrange
from hypothesis import given
from hypothesis import strategies as st

from fusion_engine.language.axes import AxesText, parse_axes, solve_axes
from fusion_engine.matching.rearrange import expected_map, identity, reshape, transpose
from tests.matching.given import kernel, kernels_of, reasons, rules_of, run, view_of

HEADS = """
rule: heads
given: {x: "real[S, B, E]"}
match:
  - {variant: any, pattern: 'y = Sigmoid(rearrange(x, "s b (h d) -> b h s d"))'}
emit:
  - {kernel: heads, args: {x: x}, attrs: {h: h, d: d}}
"""
HEADS_KERNEL = kernels_of(
    kernel("heads", {"x": "T[S, B, E]"}, "T[B, H, S, D]", {"h": "int", "d": "int"}, {"H": "h", "D": "d"})
)


@pytest.mark.parametrize(
    ("body", "fires"),
    [
        ("r = Reshape(x, s1)\n t = Transpose<perm = [1, 2, 0, 3]>(r)", True),
        ("p = Transpose<perm = [1, 0, 2]>(x)\n r = Reshape(p, s2)\n t = Transpose<perm = [0, 2, 1, 3]>(r)", True),
        ("r = Reshape(x, s3)\n t = Transpose<perm = [1, 3, 0, 2]>(r)", False),
        ("r = Reshape(x, s4)\n t = Transpose<perm = [0, 2, 1, 3]>(r)", False),
    ],
)
def test_chains_of_movement(body: str, fires: bool) -> None:
    text = f"""t (float[5,2,12] x) => (float[2,3,5,4] y)
    <int64[4] s1 = {{5, 2, 3, 4}}, int64[4] s2 = {{2, 5, 3, 4}}, int64[4] s3 = {{5, 2, 4, 3}},
     int64[4] s4 = {{2, 5, 3, 4}}> {{
      {body}
      y = Sigmoid(t)
    }}"""
    result = run(view_of(text), rules_of(HEADS), HEADS_KERNEL)
    assert bool(result.candidates) == fires
    if fires:
        assert dict(result.candidates[0].calls[0].attrs) == {"h": 3, "d": 4}
        assert result.candidates[0].consumes == ("x",)
    else:
        assert "no movement before" in reasons(result)


def test_empty_chain() -> None:
    rules = rules_of(HEADS.replace('"s b (h d) -> b h s d"', '"s b e -> s b e"').replace("h: h, d: d", "h: s, d: e"))
    v = view_of("t (float[5,2,12] x) => (float[5,2,12] y) { y = Sigmoid(x) }")
    k = kernels_of(kernel("heads", {"x": "T[S, B, E]"}, "T[S, B, E]", {"h": "int", "d": "int"}))
    assert dict(run(v, rules, k).candidates[0].calls[0].attrs) == {"h": 5, "d": 12}


def test_axis_names_are_sizes_of_conditions_lets_and_types() -> None:
    """`h` and `d` of the text stand in `where`, `let` and dims; a dim that is another number declines."""
    text = HEADS.replace('x: "real[S, B, E]"', 'x: "real[S, B, h * d]"')
    text = text.replace("h s d\"))'}", "h s d\"))', let: {twice: d * 2}, where: ['h == 3']}")
    text = text.replace("d: d}", "d: twice}")
    model = """t (float[5,2,12] x) => (float[2,HEADS,5,DEPTH] y) <int64[4] s = {5, 2, HEADS, DEPTH}> {
      r = Reshape(x, s)
      t = Transpose<perm = [1, 2, 0, 3]>(r)
      y = Sigmoid(t)
    }"""
    k = kernels_of(
        kernel("heads", {"x": "T[S, B, E]"}, "T[B, H, S, D]", {"h": "int", "d": "int"}, {"H": "h", "D": "d // 2"})
    )
    result = run(view_of(model.replace("HEADS", "3").replace("DEPTH", "4")), rules_of(text), k)
    assert dict(result.candidates[0].calls[0].attrs) == {"h": 3, "d": 8}
    result = run(view_of(model.replace("HEADS", "4").replace("DEPTH", "3")), rules_of(text), k)
    assert result.candidates == ()
    assert "`h == 3` does not hold" in reasons(result)


TEXTS = ("a b c -> c a b", "a (b c) d -> b (d a) c", "(a b) (c d) -> a c b d", "a b -> b a 1", "a 1 b -> (b a)")


@given(st.data(), st.sampled_from(TEXTS))
def test_index_maps_are_numpy_and_einops(data: st.DataObject, text: str) -> None:
    """Random chains of reshapes and transposes: equal to the einops text exactly where the arrays are equal."""
    parsed = parse_axes(text)
    assert isinstance(parsed, AxesText)
    names = sorted({a for g in parsed.left for a in g if isinstance(a, str)})
    extents = {n: data.draw(st.integers(1, 3), label=n) for n in names}
    source = tuple(int(np.prod([extents[a] for a in g if isinstance(a, str)])) for g in parsed.left)
    array = np.arange(int(np.prod(source))).reshape(source)
    wanted = rearrange(array, text, **extents)
    m, moved = identity(source), array
    for _ in range(data.draw(st.integers(0, 4))):
        if data.draw(st.booleans()):
            shape = data.draw(
                st.sampled_from([wanted.shape, (array.size,), tuple(reversed(moved.shape)), (1, *moved.shape)])
            )
            step = reshape(m, shape)
            moved = moved.reshape(shape)
        else:
            perm = tuple(data.draw(st.permutations(range(moved.ndim))))
            step, moved = transpose(m, perm), moved.transpose(perm)
        if step is None:
            return  # an axis begins inside a factor: no text says it
        m = step
    expected = expected_map(parsed, extents)
    same = moved.shape == wanted.shape and bool(np.array_equal(moved, wanted))
    assert (m == expected) == same
    solved = solve_axes(parsed, source, wanted.shape, extents)
    assert solved == extents
