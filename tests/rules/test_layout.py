"""Rules over movement, integers and reductions, on models drawn operator by operator: bit-equal to onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from fusion_engine.apply import apply
from fusion_engine.covering import cover
from fusion_engine.matching import match
from fusion_engine.reference import run_reference
from tests.rules import running


def model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, tuple[int, tuple[int, ...]]],
    constants: dict[str, np.ndarray],
    outputs: tuple[str, ...] = ("y",),
    opset: int = 21,
) -> onnx.ModelProto:
    infos = [helper.make_tensor_value_info(n, k, s) for n, (k, s) in inputs.items()]
    blank = [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in outputs]
    data = [numpy_helper.from_array(v, n) for n, v in constants.items()]
    made = helper.make_model(
        helper.make_graph(nodes, "drawn", infos, blank, data),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=10,
    )
    bare = onnx.ModelProto()
    bare.CopyFrom(made)
    del bare.graph.output[:]
    typed = onnx.shape_inference.infer_shapes(bare, strict_mode=True, data_prop=True)
    infer = {v.name: v for v in typed.graph.value_info}
    for o in made.graph.output:
        o.CopyFrom(infer[o.name])
    return made


def check(m: onnx.ModelProto, rule: str, seed: int, steps: int = 0) -> None:
    """The whole library covers the model, the rule takes part, and the result is onnxruntime's."""
    note(onnx.printer.to_text(m.graph))
    feeds = running.draw_inputs(m, np.random.default_rng(seed))
    try:
        want = running.by_onnxruntime(m, feeds)
    except Exception as e:
        note(str(e))
        assume(False)
        raise
    seen = running.see(m)
    if not seen.nodes:
        return
    plan = cover(seen, match(seen, running.rules(), running.kernels()).candidates)
    assert rule in {c.rule for c in plan.chosen}
    graph = apply(seen, plan, running.kernels())
    values = run_reference(graph, running.kernels(), feeds)
    running.assert_close([values[n] for n in graph.outputs], want, steps)


shapes = st.lists(st.integers(2, 5), min_size=1, max_size=4).map(tuple)
seeds = st.integers(0, 1000)
kinds = st.sampled_from([TensorProto.FLOAT, TensorProto.INT8])


@given(shape=shapes, kind=kinds, seed=seeds, data=st.data())
def test_transpose(shape: tuple[int, ...], kind: int, seed: int, data: st.DataObject) -> None:
    perm = data.draw(st.permutations(range(len(shape))))
    assume(list(perm) != sorted(perm))
    check(model([helper.make_node("Transpose", ["x"], ["y"], perm=perm)], {"x": (kind, shape)}, {}), "transpose", seed)


@given(shape=shapes, kind=kinds, seed=seeds, data=st.data())
def test_reshape(shape: tuple[int, ...], kind: int, seed: int, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape)))
    assume(len(shape) != 2 or axis != 1)
    flat = helper.make_node("Flatten", ["x"], ["y"], axis=axis)
    check(model([flat], {"x": (kind, shape)}, {}), "reshape", seed)


@given(shape=shapes, kind=kinds, seed=seeds, data=st.data())
def test_slice(shape: tuple[int, ...], kind: int, seed: int, data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=len(shape), unique=True))
    starts = [data.draw(st.integers(-shape[a], shape[a] - 1)) for a in axes]
    ends = [data.draw(st.one_of(st.integers(-shape[a], shape[a] + 3), st.just(2**62))) for a in axes]
    steps = [data.draw(st.integers(1, 3)) for _ in axes]
    for s, e, a in zip(starts, ends, axes, strict=True):
        assume(len(range(*slice(s, e).indices(shape[a]))) > 0)
    constants = {n: np.asarray(v, np.int64) for n, v in (("s", starts), ("e", ends), ("a", axes), ("t", steps))}
    m = model([helper.make_node("Slice", ["x", "s", "e", "a", "t"], ["y"])], {"x": (kind, shape)}, constants)
    assume(tuple(d.dim_value for d in m.graph.output[0].type.tensor_type.shape.dim) != shape)
    check(m, "slice", seed)


@given(shape=shapes, kind=kinds, seed=seeds, data=st.data())
def test_split(shape: tuple[int, ...], kind: int, seed: int, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    cut = data.draw(st.integers(1, shape[axis] - 1))
    names = data.draw(st.sampled_from([("a", "b"), ("a",), ("b",)]))
    node = helper.make_node("Split", ["x", "s"], ["a", "b"], axis=axis)
    m = model([node], {"x": (kind, shape)}, {"s": np.asarray([cut, shape[axis] - cut], np.int64)}, names)
    check(m, "split", seed)


@given(shape=shapes, kind=kinds, seed=seeds, data=st.data())
def test_concat(shape: tuple[int, ...], kind: int, seed: int, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    other = list(shape)
    other[axis] = data.draw(st.integers(1, 4))
    node = helper.make_node("Concat", ["a", "b"], ["y"], axis=axis)
    check(model([node], {"a": (kind, shape), "b": (kind, tuple(other))}, {}), "concat", seed)


@given(shape=shapes, kind=kinds, seed=seeds, data=st.data())
def test_gather(shape: tuple[int, ...], kind: int, seed: int, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    inside = st.integers(-shape[axis], shape[axis] - 1)
    index = np.asarray(data.draw(st.one_of(inside, st.lists(inside, min_size=1, max_size=4))), np.int64)
    node = helper.make_node("Gather", ["x", "i"], ["y"], axis=axis)
    check(model([node], {"x": (kind, shape)}, {"i": index}), "gather", seed)


@given(shape=shapes, kind=kinds, seed=seeds, data=st.data())
def test_pad(shape: tuple[int, ...], kind: int, seed: int, data: st.DataObject) -> None:
    mode = data.draw(st.sampled_from(["constant", "edge", "reflect", "wrap"]))
    last = len(shape) - 2
    sides = [data.draw(st.integers(0, min(2, shape[i % len(shape)] - 1))) for i in range(2 * len(shape))]
    if mode != "constant":
        sides = [s if i % len(shape) >= last else 0 for i, s in enumerate(sides)]
    assume(any(sides))
    constants: dict[str, np.ndarray] = {"p": np.asarray(sides, np.int64)}
    inputs = ["x", "p"]
    if mode == "constant" and data.draw(st.booleans()):
        constants["v"] = np.asarray(3, np.float32 if kind == TensorProto.FLOAT else np.int8)
        inputs.append("v")
    m = model([helper.make_node("Pad", inputs, ["y"], mode=mode)], {"x": (kind, shape)}, constants)
    rule = "pad_mirror" if mode != "constant" else "pad" if kind == TensorProto.FLOAT else "pad_integers"
    check(m, rule, seed)


@given(shape=shapes, kind=kinds, seed=seeds, data=st.data())
def test_expand(shape: tuple[int, ...], kind: int, seed: int, data: st.DataObject) -> None:
    narrow = tuple(1 if data.draw(st.booleans()) else d for d in shape)
    assume(narrow != shape)
    node = helper.make_node("Expand", ["x", "s"], ["y"])
    check(model([node], {"x": (kind, narrow)}, {"s": np.asarray(shape, np.int64)}), "expand", seed)


RESIZE = ["asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel"]
ROUNDING = ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]


@pytest.mark.parametrize("coordinates", RESIZE)
@pytest.mark.parametrize("rounding", ROUNDING)
@given(data=st.data())
def test_resize_nearest(coordinates: str, rounding: str, data: st.DataObject) -> None:
    h, w = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    p, q = data.draw(st.integers(1, 11)), data.draw(st.integers(1, 11))
    assume((p, q) != (h, w))
    node = helper.make_node(
        "Resize",
        ["x", "", "", "s"],
        ["y"],
        mode="nearest",
        coordinate_transformation_mode=coordinates,
        nearest_mode=rounding,
    )
    m = model([node], {"x": (TensorProto.FLOAT, (1, 2, h, w))}, {"s": np.asarray([1, 2, p, q], np.int64)})
    check(m, "resize_nearest", 1)


@pytest.mark.parametrize("coordinates", RESIZE)
@given(data=st.data())
def test_resize_linear(coordinates: str, data: st.DataObject) -> None:
    h, w = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    scale = data.draw(st.sampled_from([2, 3]))
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear", coordinate_transformation_mode=coordinates)
    m = model([node], {"x": (TensorProto.FLOAT, (1, 2, h, w))}, {"s": np.asarray([1, 1, scale, scale], np.float32)})
    check(m, "resize_linear", 1)


REDUCTIONS = ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSumExp"]


@pytest.mark.parametrize("op", REDUCTIONS)
@given(shape=shapes, seed=seeds, data=st.data())
def test_reduce(op: str, shape: tuple[int, ...], seed: int, data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), max_size=len(shape), unique=True))
    node = helper.make_node(f"Reduce{op}", ["x", "a"], ["y"], keepdims=data.draw(st.integers(0, 1)))
    m = model([node], {"x": (TensorProto.FLOAT, shape)}, {"a": np.asarray(axes, np.int64)})
    feeds = running.draw_inputs(m, np.random.default_rng(seed))
    seen, found, reasons = running.candidates(m, "reduce")
    chosen = running.taking_all(seen, found)
    assert chosen is not None, reasons
    running.assert_close(running.by_references(seen, chosen, feeds), running.by_onnxruntime(m, feeds))


def quantised(
    op: onnx.NodeProto,
    shape: tuple[int, ...],
    constants: dict[str, np.ndarray],
) -> onnx.ModelProto:
    """DequantizeLinear - op - QuantizeLinear with different quantisations."""
    op.input[0], op.output[0] = "real", "out"
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["real"]),
        op,
        helper.make_node("QuantizeLinear", ["out", "sy", "zy"], ["y"]),
    ]
    given_ = {
        "sx": np.float32(0.02),
        "zx": np.int8(-7),
        "sy": np.float32(0.03),
        "zy": np.int8(5),
    }
    made = {k: np.asarray(v) for k, v in given_.items()}
    return model(nodes, {"x": (TensorProto.INT8, shape)}, {**made, **constants})


@given(shape=shapes, seed=seeds, data=st.data())
def test_mean_of_integers(shape: tuple[int, ...], seed: int, data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=len(shape), unique=True))
    node = helper.make_node("ReduceMean", ["x", "a"], ["y"], keepdims=data.draw(st.integers(0, 1)))
    m = quantised(node, shape, {"a": np.asarray(axes, np.int64)})
    feeds = running.draw_inputs(m, np.random.default_rng(seed))
    seen, found, reasons = running.candidates(m, "mean_i8")
    chosen = running.taking_all(seen, found)
    assert chosen is not None, reasons
    running.assert_close(running.by_references(seen, chosen, feeds), running.by_onnxruntime(m, feeds), 1)


@given(shape=shapes, seed=seeds, data=st.data())
def test_argmax(shape: tuple[int, ...], seed: int, data: st.DataObject) -> None:
    attrs = {
        "axis": data.draw(st.integers(-len(shape), len(shape) - 1)),
        "keepdims": data.draw(st.integers(0, 1)),
        "select_last_index": data.draw(st.integers(0, 1)),
    }
    op = data.draw(st.sampled_from(["ArgMax", "ArgMin"]))
    check(model([helper.make_node(op, ["x"], ["y"], **attrs)], {"x": (TensorProto.FLOAT, shape)}, {}), "argmax", seed)


@given(shape=shapes, seed=seeds, per_axis=st.booleans(), data=st.data())
def test_quantize_and_dequantize(shape: tuple[int, ...], seed: int, per_axis: bool, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    rng = np.random.default_rng(seed)
    count = (shape[axis],) if per_axis else ()
    constants = {
        "s": np.asarray(rng.uniform(0.01, 0.1, count), np.float32),
        "z": np.asarray(rng.integers(-100, 100, count), np.int8),
    }
    q = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], axis=axis)
    check(model([q], {"x": (TensorProto.FLOAT, shape)}, constants), "quantize", seed)
    d = helper.make_node("DequantizeLinear", ["x", "s", "z"], ["y"], axis=axis)
    check(model([d], {"x": (TensorProto.INT8, shape)}, constants), "dequantize", seed)


@given(shape=shapes, seed=seeds)
def test_requantize(shape: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    constants = {
        "s": np.asarray(rng.uniform(0.01, 0.1), np.float32),
        "t": np.asarray(rng.uniform(0.01, 0.1), np.float32),
        "z": np.asarray(rng.integers(-100, 100), np.int8),
        "u": np.asarray(rng.integers(-100, 100), np.int8),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "t", "u"], ["y"]),
    ]
    check(model(nodes, {"x": (TensorProto.INT8, shape)}, constants), "requantize", seed, 1)


@given(shape=shapes, seed=seeds)
def test_uint8_is_flipped_at_the_edges(shape: tuple[int, ...], seed: int) -> None:
    constants = {"s": np.asarray(0.05, np.float32), "z": np.asarray(131, np.uint8)}
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["r"]),
        helper.make_node("Relu", ["r"], ["q"]),
        helper.make_node("QuantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    check(model(nodes, {"x": (TensorProto.UINT8, shape)}, constants), "flip_sign", seed, 1)


@given(shape=shapes, seed=seeds, to=st.sampled_from([TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8]))
def test_cast(shape: tuple[int, ...], seed: int, to: int) -> None:
    check(model([helper.make_node("Cast", ["x"], ["y"], to=to)], {"x": (TensorProto.INT8, shape)}, {}), "cast", seed)


@given(shape=shapes, seed=seeds)
def test_where(shape: tuple[int, ...], seed: int) -> None:
    inputs = {"c": (TensorProto.BOOL, shape), "a": (TensorProto.FLOAT, shape), "b": (TensorProto.FLOAT, shape[-1:])}
    check(model([helper.make_node("Where", ["c", "a", "b"], ["y"])], inputs, {}), "where", seed)


@given(shape=shapes, seed=seeds)
def test_one_value_under_two_names(shape: tuple[int, ...], seed: int) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Identity", ["y"], ["z"])]
    check(model(nodes, {"x": (TensorProto.FLOAT, shape)}, {}, ("y", "z")), "clamp", seed)


TREE_OPS = ["Add", "Sub", "Mul", "Max", "Min", "Tanh", "Sigmoid", "Relu", "Abs", "Clip", "LeakyRelu", "Elu", "Neg"]


@given(shape=shapes, seed=seeds, data=st.data())
def test_elementwise_trees(shape: tuple[int, ...], seed: int, data: st.DataObject) -> None:
    """Random trees over two operands and numbers; values used twice included."""
    values = ["a", "b"]
    nodes, constants = [], {"lo": np.asarray(-0.5, np.float32), "hi": np.asarray(0.75, np.float32)}
    for i in range(data.draw(st.integers(2, 7))):
        op = data.draw(st.sampled_from(TREE_OPS))
        pick = st.sampled_from([values[-1], *values])
        two = op in ("Add", "Sub", "Mul", "Max", "Min")
        inputs = [values[-1] if i else "a", data.draw(pick) if i else "b"][: 2 if two else 1]
        if two and data.draw(st.booleans()):
            inputs.reverse()
        inputs += data.draw(st.sampled_from([["lo", "hi"], ["lo"], ["", "hi"]])) if op == "Clip" else []
        nodes.append(helper.make_node(op, inputs, [f"v{i}"]))
        values.append(f"v{i}")
    nodes[-1].output[0] = "y"
    m = model(nodes, {"a": (TensorProto.FLOAT, shape), "b": (TensorProto.FLOAT, shape[1:])}, constants)
    feeds = running.draw_inputs(m, np.random.default_rng(seed))
    note(onnx.printer.to_text(m.graph))
    seen, found, _ = running.candidates(m, "elementwise_region")
    chosen = running.taking_all(seen, found)
    if chosen is not None:  # a node that changes nothing, or equals another, may leave no region
        running.assert_close(
            running.by_references(seen, chosen, feeds), running.by_onnxruntime(m, feeds), summands=10.0
        )
