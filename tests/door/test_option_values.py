"""Sizes as people write them, and places that cannot be written to: said before any work is done."""

from __future__ import annotations

from pathlib import Path

import pytest

import gap_fuse
from fusion_engine.diagnostics import GapFuseError
from gap_fuse.authoring.catalogue import write_catalogue
from gap_fuse.library import load_library
from tests.conftest import ROOT
from tests.door.test_command import command, refused
from tiler import load_target
from tiler.byte_sizes import byte_size

MODEL = ROOT / "examples" / "digits" / "digits_int8.onnx"
SIZES = [
    ("32768", 32768),
    ("32k", 32768),
    ("32K", 32768),
    ("32kB", 32768),
    ("32 KiB", 32768),
    ("32,768", 32768),
    ("32_768", 32768),
    ("32768B", 32768),
    ("1.5M", 1572864),
    ("0.5k", 512),
    ("8MiB", 8388608),
    ("1g", 1 << 30),
]


@pytest.mark.parametrize(("text", "size"), SIZES)
def test_sizes(text: str, size: int) -> None:
    assert byte_size(text) == size


@pytest.mark.parametrize("text", ["", "k", "32x", "32kBB", "-32k", "1e4", "0", "0.0001k", "1.0001k", "3 2", "inf", "٣"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="`"):
        byte_size(text)


def test_the_command_takes_sizes() -> None:
    """`--l1 32k` was "not a valid integer range"."""
    done = command("tile", MODEL, "--l1", "6k", "--l2", "0.5M", "--l3", "4MiB")
    assert "of 6,144 B at peak" in done.output
    assert "of 524,288 B at peak" in done.output
    assert "of 4,194,304 B at peak" in done.output
    refusal = refused("tile", MODEL, "--l1", "32q")
    assert "'--l1': `32q` is no size: bytes, or a size such as 32k, 32kB, 32KiB or 1.5M" in refusal


def test_targets_take_sizes(tmp_path: Path) -> None:
    text = (ROOT / "targets" / "host" / "target.yaml").read_text()
    (tmp_path / "target.yaml").write_text(text.replace("bytes: 524288", "bytes: 512 kB").replace("256}", "0.25 kB}"))
    assert load_target(tmp_path).levels == load_target(ROOT / "targets" / "host").levels
    (tmp_path / "target.yaml").write_text(text.replace("bytes: 524288", "bytes: plenty"))
    with pytest.raises(GapFuseError, match=r"target\.yaml:10:12: error: bytes: `plenty` is no size"):
        load_target(tmp_path)


FILES = [
    ("tile", MODEL, "--plot"),
    ("fuse", MODEL, "-o"),
    ("quantize", MODEL, "-o"),
    ("outline", MODEL, "--keep", "x=y", "-o"),
    ("stats", MODEL, "-o"),
    ("stats", MODEL, "--plot"),
    ("stats", "merge", "a.npz", "-o"),
    ("run", "out", "--inputs", "a.npz", "-o"),
]
FOLDERS = [("compile", MODEL, "-o"), ("rules", "docs", "-o"), ("rules", "new", "some_rule", "--dir")]


@pytest.mark.parametrize("words", FILES, ids=lambda words: f"{words[0]} {words[-1]}")
def test_where_no_file_can_be_written(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "README.md").write_text("text")
    assert "README.md is a file, not a folder" in refused(*words, tmp_path / "README.md" / "x")
    assert "there is no folder" in refused(*words, tmp_path / "gone" / "x")
    assert "is a folder: name a file" in refused(*words, tmp_path)
    assert "README.md must end in ." in refused(*words, tmp_path / "README.md")
    assert [p.name for p in tmp_path.iterdir()] == ["README.md"]


@pytest.mark.parametrize("words", FOLDERS, ids=lambda words: f"{words[0]} {words[-1]}")
def test_where_no_folder_can_be_made(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "README.md").write_text("text")
    assert "README.md is a file: a folder is written" in refused(*words, tmp_path / "README.md")
    assert "README.md is a file, not a folder" in refused(*words, tmp_path / "README.md" / "x" / "y")
    assert "net.c is named like a file" in refused(*words, tmp_path / "net.c")
    assert [p.name for p in tmp_path.iterdir()] == ["README.md"]


def test_compile_overwrites_what_it_wrote_and_nothing_else(tmp_path: Path) -> None:
    result = gap_fuse.compile(MODEL)
    (tmp_path / "Makefile").write_text("all:\n")
    with pytest.raises(GapFuseError, match=r"Makefile: error: is there already, and no compiled network"):
        result.write(tmp_path)
    assert (tmp_path / "Makefile").read_text() == "all:\n"
    result.write(result.write(tmp_path / "out"))


def test_docs_remove_their_own_pages_alone(tmp_path: Path) -> None:
    """`rules docs -o .` removed every other .md file of the folder."""
    library = load_library()
    write_catalogue(library, tmp_path)
    (tmp_path / "NOTES.md").write_text("mine")
    (tmp_path / "gone.md").write_text((tmp_path / "conv.md").read_text())
    write_catalogue(library, tmp_path)
    assert (tmp_path / "NOTES.md").read_text() == "mine"
    assert not (tmp_path / "gone.md").exists()
