"""What a model answers: by onnxruntime, and in float64 with Q and DQ kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.tolerances import TRUSTED
from gap_fuse.oracle import session, words_of
from gap_fuse.precise import as_written_in_float64
from gap_fuse.proof.captures import draw_values
from gap_fuse.proof.draft import NotDrawable

Arrays = Mapping[str, np.ndarray]


def draw_feeds(
    model: onnx.ModelProto, rng: np.random.Generator, limits: Mapping[str, tuple[int, int]] | None = None
) -> dict[str, np.ndarray]:
    """Values for the graph inputs, now and then large ones."""
    feeds: dict[str, np.ndarray] = {}
    divides = any(n.op_type in ("Div", "Mod") for n in model.graph.node)  # whole numbers by 0: the processor traps
    for i in model.graph.input:
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type))
        shape = tuple(d.dim_value for d in i.type.tensor_type.shape.dim)
        value = draw_values(rng, dtype, shape, (limits or {}).get(i.name))
        scaled = value * dtype.type(rng.choice([1.0, 1.0, 4.0])) if dtype.kind == "f" else value
        feeds[i.name] = np.asarray(np.where(value == 0, 1, value) if divides and dtype.kind in "iu" else scaled, dtype)
    return feeds


def by_onnxruntime(model: onnx.ModelProto, feeds: Arrays, outputs: Sequence[str] | None = None) -> list[np.ndarray]:
    """The outputs, optimisation off. Raises NotDrawable where onnxruntime takes the model or its inputs not."""
    try:
        live = session(model)
        names = list(outputs or (o.name for o in model.graph.output))
        return [np.asarray(v) for v in live.run(names, dict(feeds))]  # type: ignore[attr-defined]
    except GapFuseError as e:
        raise NotDrawable(e.diagnostics[0].message) from e
    except Exception as e:  # onnxruntime raises a family of its own without a common public base
        raise NotDrawable(f"onnxruntime: {words_of(e)}") from e


def in_float64(model: onnx.ModelProto, feeds: Arrays, near: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs with every float widened to float64; an output that is not near onnxruntime's (`near`), or cannot be
    evaluated so, is onnxruntime's own."""
    if all(v.dtype.kind != "f" for v in near) and not _has_floats(model):
        return list(near)
    found = as_written_in_float64(model, [o.name for o in model.graph.output], feeds)
    if found is None:
        return list(near)
    return [f if _trusted(f, n) else n for f, n in zip(found.values(), near, strict=True)]


def _has_floats(model: onnx.ModelProto) -> bool:
    return any(t.data_type == TensorProto.FLOAT for t in model.graph.initializer)


def _trusted(found: np.ndarray, near: np.ndarray) -> bool:
    if found.shape != near.shape:
        return False
    if near.dtype.kind != "f":
        return bool(np.all(np.abs(found.astype(np.float64) - near.astype(np.float64)) <= 1))
    finite = np.isfinite(near)
    if not np.array_equal(np.isfinite(found), finite):
        return False
    scale = max(float(np.max(np.abs(near[finite]), initial=0.0)), 1e-6)
    return bool(np.max(np.abs(found[finite] - near[finite]), initial=0.0) <= TRUSTED * scale)
