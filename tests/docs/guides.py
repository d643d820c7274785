"""Guides as scripts: titled blocks are files, console blocks are commands with the output that they must print."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from gap_fuse.cli import main

_FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.M | re.S)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its language, its title, its text, and the line of the guide that it begins on."""

    language: str
    title: str | None
    text: str
    line: int


def blocks(guide: Path) -> Iterator[Block]:
    """The fenced blocks of a guide in order."""
    text = guide.read_text()
    for m in _FENCE.finditer(text):
        yield Block(m[1], m[2], m[3], text[: m.start()].count("\n") + 1)


def play(guide: Path, folder: Path) -> int:
    """Write and run everything in order, in `folder`; how many commands ran. AssertionError: other output."""
    before, ran = Path.cwd(), 0
    os.chdir(folder)
    try:
        for block in blocks(guide):
            if block.title is not None:
                _write(folder / block.title, block.text)
            elif block.language == "console":
                ran += sum(1 for command, wanted in _commands(block) if _run(guide, block, command, wanted))
    finally:
        os.chdir(before)
    return ran


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _commands(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Each `$ command` with the lines below it."""
    for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
        command, *wanted = part.rstrip("\n").split("\n")
        yield command, wanted


def _run(guide: Path, block: Block, command: str, wanted: list[str]) -> bool:
    program, *arguments = shlex.split(command)
    assert program == "gap-fuse", f"{guide.name}:{block.line}: only gap-fuse is run, not `{program}`"
    result = CliRunner().invoke(main, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    have = result.output.rstrip("\n").split("\n")
    assert _alike(have, wanted), f"{guide.name}:{block.line}: `{command}` prints\n{result.output}"
    return True


def _alike(have: list[str], wanted: list[str]) -> bool:
    """Line by line; `...` stands for any lines, or inside a line for any text."""
    pattern = "\n".join(".*" if w == "..." else re.escape(w).replace(r"\.\.\.", ".*?") for w in map(str.rstrip, wanted))
    return re.fullmatch(pattern, "\n".join(h.rstrip() for h in have), re.S) is not None
