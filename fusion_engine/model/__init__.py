"""Reading ONNX models: bytes in, a checked `Model` out."""

from fusion_engine.model.check import check_model
from fusion_engine.model.half import widen_half
from fusion_engine.model.read import Model, read_model

__all__ = ["Model", "check_model", "read_model", "widen_half"]
