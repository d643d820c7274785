"""Other matchers on the same file in the same run: onnxscript's rewriter and onnxruntime's optimiser."""

from __future__ import annotations

import gc
import importlib
import pkgutil
import time
from types import ModuleType
from typing import Any

import onnx
import onnxruntime as ort

from fusion_engine.collection import paused

EXPAND_RULES = 4  # of the 38 rules of one kind, before binary operators: 51 rules in all


def onnxscript_rules() -> list[Any] | None:
    """onnxscript's common rules and fusions; None where it is not installed."""
    try:
        from onnxscript.rewriter.rules import common, fusion
    except ImportError:
        return None
    return [rule for package in (fusion, common) for module in _modules(package) for rule in _rules(module)]


def _modules(package: ModuleType) -> list[ModuleType]:
    names = sorted(m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.endswith("_test"))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


def _rules(module: ModuleType) -> list[Any]:
    found: list[Any] = []
    for name, value in sorted(vars(module).items()):
        if type(value).__name__ == "RewriteRuleSet":
            found += list(value.rules)[: EXPAND_RULES if "expand_before" in name else None]
    return found


def onnxscript_seconds(model: onnx.ModelProto, rules: list[Any]) -> float:
    """CPU seconds of rewriting, the model already loaded."""
    import onnx_ir
    from onnxscript.rewriter import RewriteRuleSet

    gc.collect()
    with paused():
        loaded = onnx_ir.from_proto(model)
        start = time.process_time()
        RewriteRuleSet(rules).apply_to_model(loaded)
        return time.process_time() - start


def onnxruntime_seconds(model: onnx.ModelProto) -> float:
    """CPU seconds of making a session on one thread, optimised EXTENDED less not optimised."""
    data = model.SerializeToString()

    def seconds(level: ort.GraphOptimizationLevel) -> float:
        options = ort.SessionOptions()
        options.graph_optimization_level, options.intra_op_num_threads = level, 1
        start = time.process_time()
        ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        return time.process_time() - start

    plain = seconds(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
    return seconds(ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED) - plain
