"""The fusion engine: ONNX in, a graph of kernel calls out. Every stage is a function from value to value; see
ARCHITECTURE.md."""

from fusion_engine.apply import apply
from fusion_engine.covering import Candidate, Plan, cover
from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span
from fusion_engine.explain import explain
from fusion_engine.explanation import Explanation, explanation_to_json
from fusion_engine.fuse import fuse_model
from fusion_engine.graph import Buffer, Call, FusedGraph
from fusion_engine.graph_json import graph_from_json, graph_to_json
from fusion_engine.kernels import KernelSet, load_kernels
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language import check_rules, load_rules
from fusion_engine.language.types import Rule, RuleSet
from fusion_engine.layouts import order_layouts
from fusion_engine.matching import match
from fusion_engine.model import Model, read_model
from fusion_engine.planning import NotCoveredError, Planned, plan
from fusion_engine.reference import run_reference
from fusion_engine.rewriting import rewrite
from fusion_engine.view import View, view

__all__ = [
    "Buffer",
    "Call",
    "Candidate",
    "Diagnostic",
    "Explanation",
    "FusedGraph",
    "GapFuseError",
    "Kernel",
    "KernelSet",
    "Model",
    "NotCoveredError",
    "Plan",
    "Planned",
    "Rule",
    "RuleSet",
    "Span",
    "View",
    "apply",
    "check_rules",
    "cover",
    "explain",
    "explanation_to_json",
    "fuse_model",
    "graph_from_json",
    "graph_to_json",
    "load_kernels",
    "load_rules",
    "match",
    "order_layouts",
    "plan",
    "read_model",
    "rewrite",
    "run_reference",
    "view",
]
