"""The view: a model in normal form, which rules are matched against."""

from fusion_engine.view.build import view
from fusion_engine.view.load import call_key
from fusion_engine.view.marks import KERNELS, MARKS, OUTLINED, Marks, marks_to_text
from fusion_engine.view.operators import FLIP_SIGN, VIEW_OPSET, Operator, operator
from fusion_engine.view.scopes import scopes_of
from fusion_engine.view.types import FUNCTION, AttrValue, Dim, Scope, View, ViewNode, ViewValue
from fusion_engine.view.write import node_to_proto, view_to_model

__all__ = [
    "FLIP_SIGN",
    "FUNCTION",
    "KERNELS",
    "MARKS",
    "OUTLINED",
    "VIEW_OPSET",
    "AttrValue",
    "Dim",
    "Marks",
    "Operator",
    "Scope",
    "View",
    "ViewNode",
    "ViewValue",
    "call_key",
    "marks_to_text",
    "node_to_proto",
    "operator",
    "scopes_of",
    "view",
    "view_to_model",
]
