"""The view written back to ONNX against the file, both run by onnxruntime without optimisation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnxruntime as ort

from fusion_engine.model import Model, read_model
from fusion_engine.view import View, view, view_to_model

Arrays = dict[str, np.ndarray]


def session(proto: onnx.ModelProto) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return ort.InferenceSession(proto.SerializeToString(), options)


def draw(model: Model, seed: int) -> Arrays:
    """Random inputs: all of 8-bit integers, small ones of wider ones (they are mostly indices), ones for masks."""
    rng = np.random.default_rng(seed)
    drawn: Arrays = {}
    for value in model.proto.graph.input:
        if value.name not in model.inputs:
            continue
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if "mask" in value.name:
            array = np.ones(shape)
        elif dtype.kind in "iu":
            limits = np.iinfo(dtype) if dtype.itemsize == 1 else np.iinfo(np.int8)
            low = limits.min if dtype.itemsize == 1 else 0
            array = rng.integers(low, limits.max if dtype.itemsize == 1 else 8, shape, endpoint=True)
        else:
            array = rng.integers(0, 2, shape) if dtype.kind == "b" else rng.standard_normal(shape)
        drawn[value.name] = np.asarray(array).astype(dtype)
    return drawn


def assert_same(expected: np.ndarray, actual: np.ndarray, what: str, tolerance: float = 1e-5) -> None:
    """Equal for integers; floats within `tolerance` of the largest magnitude."""
    assert (expected.dtype, expected.shape) == (actual.dtype, actual.shape), what
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(actual, expected, err_msg=what)
        return
    largest = float(np.max(np.abs(expected[np.isfinite(expected)]), initial=1e-30))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * largest, err_msg=what)


def check(
    source: object,
    dims: Mapping[str, int] | None = None,
    closed: frozenset[str] = frozenset(),
    opened: frozenset[str] = frozenset(),
    inputs: Arrays | None = None,
    seeds: int = 2,
    tolerance: float = 1e-5,
) -> View:
    """View the model, write the view back, and compare every output; the view."""
    model = read_model(source, dims)  # type: ignore[arg-type]
    seen = view(model, closed, opened)
    original = session(model.proto)
    written = session(view_to_model(seen, model.proto.functions))
    for seed in range(1 if inputs is not None else seeds):
        given = inputs if inputs is not None else draw(model, seed)
        before = original.run(list(model.outputs), given)
        after = written.run(list(seen.outputs), given)
        for name, a, b in zip(model.outputs, before, after, strict=True):
            if isinstance(a, np.ndarray):
                assert_same(a, b, name, tolerance)
    return seen


def ops(seen: View) -> list[str]:
    return [n.op for n in seen.nodes]


def invariants(seen: View) -> None:
    """What types.py promises of every view."""
    made: set[str] = set()
    for index, node in enumerate(seen.nodes):
        assert node.index == index
        assert node.origins
        for name in (*node.inputs, *node.captures):
            if name is not None:
                value = seen.values[name]
                assert name in made or name in seen.inputs or value.const is not None
                assert index in seen.users[name]
        for name in filter(None, node.outputs):
            assert seen.producer[name] == index
            assert name not in made
            made.add(name)
    assert all(o in made for o in seen.outputs if o not in seen.inputs)
    assert all(target in seen.values for target in seen.aliases.values())
    for name, readers in seen.users.items():
        assert list(readers) == sorted(set(readers))
        assert all(name in (*seen.nodes[r].inputs, *seen.nodes[r].captures) for r in readers)
