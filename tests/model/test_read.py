"""Reading models: what is accepted, and that anything else ends in a located error."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper, parser

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.model import read_model
from fusion_engine.view import view

SMALL = """
<ir_version: 8, opset_import: ["" : 17]>
net (float[N, 3, "height", 4] x) => (float[N, "k"] y)
<float[12, 2] w = {1,2,3,4,5,6,7,8,9,10,11,12,1,2,3,4,5,6,7,8,9,10,11,12}>
{ m = ReduceMean <axes = [2], keepdims = 0> (x)
  f = Flatten (m)
  y = MatMul (f, w) }
"""


def small() -> onnx.ModelProto:
    return parser.parse_model(SMALL.replace('"height"', "height").replace('"k"', "k"))


def error(source: object, **dims: int) -> str:
    with pytest.raises(GapFuseError) as caught:
        read_model(source, dims)  # type: ignore[arg-type]
    return str(caught.value)


def test_binds_symbols_everywhere() -> None:
    model = read_model(small(), {"N": 2, "height": 5})
    assert [d.dim_value for d in model.proto.graph.input[0].type.tensor_type.shape.dim] == [2, 3, 5, 4]
    assert model.proto.graph.output[0].type.tensor_type.shape.dim[0].dim_value == 2
    assert view(model).values["y"].shape == (2, 2)


def test_binds_by_place() -> None:
    assert read_model(small(), {"x:0": 1, "x:2": 6}).dims == {"x:0": 1, "x:2": 6}


def test_does_not_change_the_callers_model() -> None:
    proto = small()
    before = proto.SerializeToString()
    read_model(proto, {"N": 2, "height": 5})
    assert proto.SerializeToString() == before


def test_open_dimension_says_how_to_give_it() -> None:
    text = error(small(), N=1)
    assert "axis 2 of input `x` is called `height`" in text
    assert "--dim height=N" in text


def test_leading_open_dimension_is_called_the_batch() -> None:
    assert "--dim N=1" in error(small(), height=4)


def test_nameless_dimension_is_given_by_place() -> None:
    proto = small()
    proto.graph.input[0].type.tensor_type.shape.dim[0].Clear()
    assert "--dim x:0=1" in error(proto, height=4)
    assert read_model(proto, {"x:0": 3, "height": 4}).dims["x:0"] == 3


def test_unknown_dimension_suggests_the_nearest() -> None:
    assert "did you mean `height`" in error(small(), N=1, heigth=4, height=4)


def test_extent_must_be_positive() -> None:
    assert "dimension `N` cannot be 0" in error(small(), N=0, height=4)


def test_fixed_dimension_cannot_be_given() -> None:
    with pytest.raises(GapFuseError, match="axis 1 of input `x` is fixed at 3"):
        read_model(small(), {"N": 1, "height": 4, "x:1": 3})


def test_missing_file_and_folder(tmp_path: Path) -> None:
    assert "there is no such file" in error(tmp_path / "no.onnx")
    assert "folder" in error(tmp_path)


def test_the_text_form_is_read_without_a_word(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """A newcomer copied a guide's model: it was no ModelProto under .onnx, and a warning of onnx's under .onnxtxt."""
    text = '<ir_version: 8, opset_import: ["" : 17]>\nnet (float[2] x) => (float[2] y) { y = Relu(x) }'
    (tmp_path / "m.onnxtxt").write_text(text)
    assert read_model(tmp_path / "m.onnxtxt").outputs == ("y",)
    assert not recwarn.list
    (tmp_path / "m.onnx").write_text(text)
    assert ".onnxtxt" in error(tmp_path / "m.onnx")


@pytest.mark.parametrize("wrong", ["y = Relu(x x)", "y = Relu", "1"])
def test_a_mistake_in_the_text_form_has_its_place(tmp_path: Path, wrong: str) -> None:
    text = f'<ir_version: 8, opset_import: ["" : 17]>\nnet (float[2] x) => (float[2] y) {{\n  {wrong}\n}}'
    (tmp_path / "m.onnxtxt").write_text(text)
    assert "m.onnxtxt:3:" in (said := error(tmp_path / "m.onnxtxt")) or "m.onnxtxt:4:" in said
    assert "^" in said


def test_initializers_that_are_inputs_are_constants() -> None:
    proto = small()
    proto.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [12, 2]))
    assert read_model(proto, {"N": 1, "height": 2}).inputs == ("x",)


def external(folder: Path) -> Path:
    proto = small()
    weights = numpy_helper.to_array(proto.graph.initializer[0])
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(weights, "w"))
    path = folder / "net.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return path


def test_external_data_is_loaded(tmp_path: Path) -> None:
    path = external(tmp_path)
    weights = numpy_helper.to_array(read_model(path, {"N": 1, "height": 2}).proto.graph.initializer[0])
    np.testing.assert_array_equal(weights, numpy_helper.to_array(small().graph.initializer[0]))


def test_missing_external_data_names_tensor_and_file(tmp_path: Path) -> None:
    path = external(tmp_path)
    (tmp_path / "weights.bin").unlink()
    text = error(path)
    assert "tensor `w`" in text
    assert "weights.bin" in text


def test_external_data_of_bytes_needs_the_path(tmp_path: Path) -> None:
    assert "give the path of the model instead" in error(external(tmp_path).read_bytes())


def test_value_that_nothing_makes() -> None:
    proto = small()
    proto.graph.node[2].input[0] = "nowhere"
    assert "node `y` (MatMul) reads `nowhere`, which nothing makes" in error(proto)


def test_value_made_twice() -> None:
    proto = small()
    proto.graph.node.append(proto.graph.node[1])
    assert "value `f` is made by 2 nodes" in error(proto)


def test_truncated_initializer() -> None:
    proto = small()
    tensor = proto.graph.initializer[0]
    del tensor.float_data[:]
    tensor.raw_data = b"abc"
    assert "initializer `w` cannot be decoded" in error(proto)


def test_unknown_operator_is_let_through() -> None:
    proto = small()
    proto.graph.node[1].op_type = "FlattenIt"
    nodes = view(read_model(proto, {"N": 1, "height": 2})).nodes
    assert [n.op for n in nodes] == ["ReduceMean", "FlattenIt", "MatMul"]


def test_wrong_number_of_inputs_names_the_node() -> None:
    proto = small()
    del proto.graph.node[2].input[1:]
    assert "node `y` (MatMul) is not valid" in error(proto)


@given(st.binary(max_size=300))
@example(b"")
@example(b"\x08\x07")
def test_any_bytes_end_in_a_located_error(data: bytes) -> None:
    with pytest.raises(GapFuseError):
        read_model(data)


DATA = small().SerializeToString()


@given(st.lists(st.tuples(st.integers(0, len(DATA) - 1), st.integers(0, 255)), min_size=1, max_size=6))
@example([(237, 128)])  # a name that is no UTF-8
@example([(104, 104)])  # an initializer whose data is longer than its shape
def test_damaged_file_ends_in_a_view_or_a_located_error(changes: list[tuple[int, int]]) -> None:
    data = bytearray(DATA)
    for at, value in changes:
        data[at] = value
    with suppress(GapFuseError):
        view(read_model(bytes(data), {"N": 1, "height": 2}))


@given(st.integers(0, len(DATA) - 1))
def test_cut_off_file_ends_in_a_view_or_a_located_error(length: int) -> None:
    with suppress(GapFuseError):
        view(read_model(DATA[:length], {"N": 1, "height": 2}))
