"""The view: a model in normal form, which rules are matched against."""

from fusion_engine.view.build import view
from fusion_engine.view.operators import FLIP_SIGN, VIEW_OPSET, Operator, operator
from fusion_engine.view.types import AttrValue, Dim, Scope, View, ViewNode, ViewValue
from fusion_engine.view.write import node_to_proto, view_to_model

__all__ = [
    "FLIP_SIGN",
    "VIEW_OPSET",
    "AttrValue",
    "Dim",
    "Operator",
    "Scope",
    "View",
    "ViewNode",
    "ViewValue",
    "node_to_proto",
    "operator",
    "view",
    "view_to_model",
]
