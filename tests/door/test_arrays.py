"""Samples: npz files in, seeded draws, comparisons."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_engine.diagnostics import GapFuseError
from gap_fuse.arrays import Port, draw_samples, read_samples, write_samples
from gap_fuse.comparing import difference, top_one
from gap_fuse.recordings import OpenPort, batches, open_recording

IMAGE = Port("serving/image:0", "float32", (1, 2, 3))


def npz(folder: Path, **arrays: np.ndarray) -> Path:
    path = folder / "samples.npz"
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize("key", ["serving/image:0", "in:serving/image:0", "serving|image:0", "in:serving|image:0"])
def test_input_found_under_each_spelling(tmp_path: Path, key: str) -> None:
    data = read_samples(npz(tmp_path, **{key: np.ones((1, 2, 3), np.float32)}), [IMAGE])
    assert data.count == 1
    assert data.inputs[IMAGE.name].shape == (1, 1, 2, 3)


@pytest.mark.parametrize("shape", [(5, 1, 2, 3), (5, 2, 3)])
def test_several_samples_along_a_leading_axis(tmp_path: Path, shape: tuple[int, ...]) -> None:
    array = np.arange(30, dtype=np.float32).reshape(shape)
    data = read_samples(
        npz(tmp_path, **{IMAGE.name: array, "out:score": np.zeros((5, 4), np.float32), "labels": np.arange(5)}),
        [IMAGE],
    )
    assert data.count == 5
    assert np.array_equal(data.sample(3)[IMAGE.name], array.reshape(5, 1, 2, 3)[3])
    assert data.labels is not None
    assert list(data.labels) == [0, 1, 2, 3, 4]


def test_limit_takes_the_first_samples(tmp_path: Path) -> None:
    data = read_samples(npz(tmp_path, **{IMAGE.name: np.zeros((5, 1, 2, 3), np.float32)}), [IMAGE], limit=2)
    assert data.count == 2


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"image": np.zeros((1, 2, 3), np.float32)}, "no array for the graph input `serving/image:0`"),
        ({IMAGE.name: np.zeros((1, 2, 4), np.float32)}, "has shape [1, 2, 4]"),
        ({IMAGE.name: np.zeros((1, 2, 3), np.int8)}, "is int8; the model takes float32"),
        ({IMAGE.name: np.zeros((0, 1, 2, 3), np.float32)}, "no samples"),
        ({IMAGE.name: np.zeros((2, 1, 2, 3), np.float32), "labels": np.zeros(3)}, "`labels` has shape"),
    ],
)
def test_bad_arrays_are_named(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(GapFuseError) as caught:
        read_samples(npz(tmp_path, **arrays), [IMAGE])
    assert message in str(caught.value)


@given(content=st.binary(max_size=200))
def test_any_bytes_end_in_a_located_error(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("npz") / "bad.npz"
    path.write_bytes(content)
    with pytest.raises(GapFuseError) as caught:
        read_samples(path, [IMAGE])
    assert caught.value.diagnostics[0].span is not None


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GapFuseError, match="there is no such file"):
        read_samples(tmp_path / "absent.npz", [IMAGE])


def test_written_outputs_read_back(tmp_path: Path) -> None:
    array = np.arange(24, dtype=np.float32).reshape(4, 1, 2, 3)
    write_samples(tmp_path / "out.npz", {IMAGE.name: array})
    assert np.array_equal(read_samples(tmp_path / "out.npz", [IMAGE]).inputs[IMAGE.name], array)


@pytest.mark.parametrize("name", ["file", "allow_pickle", "args", "a/b", "in:x", "x.npy"])
def test_outputs_of_any_name_are_written(tmp_path: Path, name: str) -> None:
    """numpy.savez takes an array called `file` for its own argument."""
    array = np.arange(8, dtype=np.float32).reshape(2, 4)
    write_samples(tmp_path / "out", {name: array})
    read = read_samples(tmp_path / "out", [Port(name, "float32", (4,))])
    assert np.array_equal(read.inputs[name], array)


def damaged(folder: Path, kind: str) -> Path:
    """An npz file of one array `x`, float32[100, 4], with one thing wrong."""
    path = folder / "x.npz"
    np.savez_compressed(path, x=np.random.default_rng(0).random((100, 4), np.float32))
    content = bytearray(path.read_bytes())
    central = content.find(b"PK\x01\x02")
    if kind == "bits":
        content[central - 400] ^= 0xFF
    if kind == "compression":
        content[8] = content[central + 10] = 99
    if kind == "encrypted":
        content[6] |= 1
        content[central + 8] |= 1
    path.write_bytes(content)
    if kind == "short":
        header = {"descr": "<f4", "fortran_order": False, "shape": (100, 4)}
        with zipfile.ZipFile(path, "w") as archive, archive.open("x.npy", "w") as stream:
            np.lib.format.write_array_header_1_0(stream, header)
            stream.write(bytes(99 * 16))
    return path


@pytest.mark.parametrize("kind", ["bits", "compression", "encrypted", "short"])
def test_damaged_files_are_located_errors(tmp_path: Path, kind: str) -> None:
    """Whether read whole (run, verify) or in batches (stats): zlib, zipfile and numpy each raise kinds of their own."""
    path = damaged(tmp_path, kind)
    with pytest.raises(GapFuseError, match="not a readable npz file"):
        read_samples(path, [Port("x", "float32", (4,))])
    with pytest.raises(GapFuseError, match="not a readable npz file"):
        list(batches(open_recording(path, [OpenPort("x", np.dtype("float32"), (None, 4))]), 7))


def test_one_number_for_an_input_of_unknown_rank(tmp_path: Path) -> None:
    recording = open_recording(npz(tmp_path, x=np.float32(3)), [OpenPort("x", np.dtype("float32"), None)])
    assert [b["x"].tolist() for b in batches(recording, 4)] == [[3.0]]


def test_drawn_samples_depend_on_the_seed_alone() -> None:
    ports = [IMAGE, Port("flag", "bool", (2,)), Port("q", "int8", (3,)), Port("ids", "int64", (3,))]
    a, b, c = (draw_samples(ports, 3, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a.inputs[p.name], b.inputs[p.name]) for p in ports)
    assert not np.array_equal(a.inputs[IMAGE.name], c.inputs[IMAGE.name])
    assert all(a.inputs[p.name].dtype == np.dtype(p.dtype) for p in ports)


def test_difference_counts_non_finite_values() -> None:
    d = difference(np.array([np.inf, np.nan, 1.0, 2.0]), np.array([np.inf, np.nan, 1.0, np.nan]))
    assert (d.differing, d.worst) == (1, np.inf)
    assert difference(np.array([1, 2], np.int8), np.array([1, -2], np.int8)).worst == 4


def test_difference_tells_large_integers_apart() -> None:
    """2**60 and 2**60 + 1 are the same float64."""
    d = difference(np.array([2**60, 5]), np.array([2**60 + 1, 5]))
    assert (d.differing, d.worst) == (1, 1.0)


def test_top_one_tells_doubts_from_errors() -> None:
    wanted = np.array([[10, 8, 0], [10, 0, 0], [1, 2, 3]])
    got = np.array([[9, 10, 0], [0, 10, 0], [1, 2, 3]])
    result = top_one(got, wanted, step=1.0)
    assert [d[0] for d in result.doubts] == [0]
    assert [e[0] for e in result.errors] == [1]
    assert result.agreeing == 1
