"""Rewriting: rules that turn ONNX into ONNX, run on the view to a fixed point before anything is matched."""

from fusion_engine.rewriting.rewrite import Rewritten, Step, rewrite

__all__ = ["Rewritten", "Step", "rewrite"]
