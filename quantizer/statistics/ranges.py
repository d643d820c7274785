"""What a model already says of its values' ranges: quantization_annotation, and scales beside quantised operators."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

from quantizer.statistics.metadata import statistics_of
from quantizer.statistics.published import KnownRange, TensorStatistics

ANNOTATED_AS_INT8 = "int8"
"""quantization_annotation has no type of its own; its zero point's, where it is given."""
GRIDS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "QuantizeLinear": ((0, 1, 2), ()),
    "DequantizeLinear": ((), (1, 2)),
    "QLinearConv": ((), (6, 7)),
    "QLinearMatMul": ((), (6, 7)),
    "QGemm": ((), (7, 8)),
    "QLinearAdd": ((), (6, 7)),
    "QLinearMul": ((), (6, 7)),
    "QLinearSigmoid": ((), (3, 4)),
    "QLinearLeakyRelu": ((), (3, 4)),
    "QLinearSoftmax": ((), (3, 4)),
    "QLinearGlobalAveragePool": ((), (3, 4)),
    "QLinearAveragePool": ((), (3, 4)),
    "QLinearConcat": ((), (0, 1)),
}
"""Per operator: which inputs are (value, scale, zero point) of a value read, and (scale, zero point) of the result."""


def known_statistics(model: onnx.ModelProto) -> dict[str, TensorStatistics]:
    """The statistics that a model carries, with the range of each value that an annotation, a QuantizeLinear or a
    quantised operator states; a value with a range alone has count 0. Constants are left out."""
    ranges = known_ranges(model)
    carried = statistics_of(model)
    ranges = {**{n: c.known_range for n, c in carried.items() if c.known_range}, **ranges}
    names = dict.fromkeys([*carried, *ranges])
    return {
        n: carried.get(n, TensorStatistics(count=0)).model_copy(update={"known_range": ranges.get(n)}) for n in names
    }


def known_ranges(model: onnx.ModelProto) -> dict[str, KnownRange]:
    """Ranges by value name, the strongest source first: annotation, QuantizeLinear, the quantised operator's output."""
    held = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    found: dict[str, KnownRange] = {}
    for name, one in (*_annotated(model.graph, held), *_written(model.graph, held)):
        found.setdefault(name, one)
    return found


def _annotated(graph: onnx.GraphProto, held: dict[str, np.ndarray]) -> Iterator[tuple[str, KnownRange]]:
    for annotation in graph.quantization_annotation:
        keys = {p.key: p.value for p in annotation.quant_parameter_tensor_names}
        scale, zero = held.get(keys.get("SCALE_TENSOR", "")), held.get(keys.get("ZERO_POINT_TENSOR", ""))
        if scale is not None:
            yield annotation.tensor_name, range_of(scale, zero, None, "quantization_annotation")


def _written(graph: onnx.GraphProto, held: dict[str, np.ndarray]) -> Iterator[tuple[str, KnownRange]]:
    for node in graph.node:
        read, made = GRIDS.get(node.op_type, ((), ()))
        inputs = [*node.input, *[""] * 9]
        axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
        if read and (scale := held.get(inputs[read[1]])) is not None:
            yield inputs[read[0]], range_of(scale, held.get(inputs[read[2]]), axis, node.op_type, _out_dtype(node))
        if made and inputs[0] not in held and (scale := held.get(inputs[made[0]])) is not None:
            yield node.output[0], range_of(scale, held.get(inputs[made[1]]), axis, node.op_type)


def _out_dtype(node: onnx.NodeProto) -> str:
    """QuantizeLinear without a zero point: its output_dtype, uint8 by default."""
    code = next((a.i for a in node.attribute if a.name == "output_dtype"), 0) or onnx.TensorProto.UINT8
    return str(helper.tensor_dtype_to_np_dtype(code))


def range_of(
    scale: np.ndarray, zero: np.ndarray | None, axis: int | None, source: str, dtype: str = ANNOTATED_AS_INT8
) -> KnownRange:
    """The real range that a grid can hold: scale * (q - zero) over the storage type's q."""
    kind = dtype if zero is None else str(zero.dtype)
    least, most = _bounds(kind)
    scales = np.asarray(scale, np.float64).ravel()
    zeros = np.zeros_like(scales) if zero is None else np.asarray(zero, np.float64).ravel()
    return KnownRange(
        low=_floats(scales * (least - zeros)),
        high=_floats(scales * (most - zeros)),
        scale=_floats(scales),
        zero_point=_floats(zeros),
        dtype=kind,
        axis=axis if scales.size > 1 else None,
        source=source,
    )


def _bounds(kind: str) -> tuple[float, float]:
    """The least and greatest number of an integer type of any width, or of a float8 type."""
    if match := re.fullmatch(r"(u?)int(\d+)", kind):
        bits = int(match[2])
        return (0.0, 2.0**bits - 1) if match[1] else (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1)
    info = ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]
    return float(info.min), float(info.max)


def _floats(values: Sequence[float] | np.ndarray) -> tuple[float, ...]:
    return tuple(float(v) for v in values)
