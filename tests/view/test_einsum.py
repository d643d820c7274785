"""Einsum opened into products and sums, against onnxruntime."""

from __future__ import annotations

import pytest
from onnx import TensorProto, helper

from tests.view.oracle import check

EXTENTS = {"b": 2, "h": 3, "i": 4, "j": 5, "k": 6}
EQUATIONS = [
    "ij,jk->ik", "bij,bkj->bik", "bhij,bhjk->bihk", "ij,jk", "ij->ji", "ij->", "ij->i", "i,j->ij", "bij,bij->bij",
    "bij,bij->b", "bhi,hij->bhj", "ij,kj,i->k", "ijk,jb->kib", "ij,ij,ij->j", "ij,k->i",
]  # fmt: skip


@pytest.mark.parametrize("equation", EQUATIONS)
def test_opened(equation: str) -> None:
    seen = check(_model(equation, EXTENTS), opened=frozenset({"Einsum"}))
    assert "Einsum" not in {n.op for n in seen.nodes}


@pytest.mark.parametrize("equation", ["...ij->...ji", "ii->i", "ii,ij->j"])
def test_what_is_no_product_stays(equation: str) -> None:
    seen = check(_model(equation, EXTENTS | {"j": 4}), opened=frozenset({"Einsum"}))
    assert {n.op for n in seen.nodes} == {"Einsum"}


def _model(equation: str, extents: dict[str, int]) -> object:
    left = equation.partition("->")[0].replace("...", "b")
    terms = left.split(",")
    names = [f"x{i}" for i in range(len(terms))]
    inputs = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, [extents[c] for c in t])
        for n, t in zip(names, terms, strict=True)
    ]
    node = helper.make_node("Einsum", names, ["y"], equation=equation)
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
