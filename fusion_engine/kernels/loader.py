"""Reads kernels/NAME/kernel.yaml into checked `Kernel` descriptors; reports every problem at its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeVar, cast

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span, near_file
from fusion_engine.expr import Expr, ExprError, Name, parse_access
from fusion_engine.kernels.check import check_kernel
from fusion_engine.kernels.descriptor import Access, AttrType, Frame, Kernel, OperandType, Outside
from fusion_engine.kernels.fields import read_conditions, read_expression
from fusion_engine.kernels.file_model import FrameSection, KernelFile, OutsideSection, SignatureSection
from fusion_engine.kernels.implementation import read_implementation
from fusion_engine.kernels.signature import SignatureError, parse_attr, parse_operand
from fusion_engine.marked_yaml import (
    Marked,
    Problems,
    as_choice,
    as_list,
    as_text,
    as_texts,
    pairs,
    read_yaml,
)

KERNEL_FILE = "kernel.yaml"
VIEWS = ("reshape", "transpose", "slice", "concat")

T = TypeVar("T", OperandType, AttrType)


class KernelSet(dict[str, Kernel]):
    """Kernels by name, sorted; `notes` say which replaced which, `broken` where those lie that have mistakes (under ""
    what is not read at all: it may hold any)."""

    notes: tuple[str, ...] = ()
    broken: Mapping[str, Span] = MappingProxyType({})


def load_kernels(dirs: Sequence[Path]) -> KernelSet:
    """Every kernel of DIR/*/kernel.yaml, sorted by name; a later directory's kernel replaces an earlier namesake.

    A kernel's own folder, or its kernel.yaml, counts as a directory of its own. Raises GapFuseError with every problem
    found, in file order; a directory without a kernel is one.
    """
    kernels, problems = read_kernels(dirs)
    if problems:
        raise GapFuseError(problems)
    return kernels


def read_kernels(dirs: Sequence[Path]) -> tuple[KernelSet, tuple[Diagnostic, ...]]:
    """As `load_kernels`: the kernels that are sound, with where the others lie, and every problem found."""
    problems: Problems = []
    found: dict[str, Kernel] = {}
    notes: list[str] = []
    broken: dict[str, Span] = {}
    for folder in dirs:
        bad: dict[str, Span] = {}
        here = _load_directory(Path(folder), problems, bad)
        notes += [
            f"kernel {n} of {k.folder} overrides the one of {found[n].folder}" for n, k in here.items() if n in found
        ]
        found = {n: k for n, k in (found | here).items() if n not in bad}
        broken = {n: p for n, p in (broken | bad).items() if n not in found}
    kernels = KernelSet((name, found[name]) for name in sorted(found))
    kernels.notes, kernels.broken = tuple(notes), broken
    return kernels, tuple(problems)


def _load_directory(folder: Path, problems: Problems, broken: dict[str, Span]) -> dict[str, Kernel]:
    before = len(problems)
    found: dict[str, Kernel] = {}
    for path in _kernel_files(folder):
        for document in _documents(path, problems, broken):
            sound = len(problems)
            kernel = read_kernel(document, path.parent, str(folder), problems)
            if kernel is None:
                name = document.get("kernel")
                broken[name.text.strip() if name is not None else ""] = problems[sound].span or document.span
                continue
            if kernel.name in found:
                problems.append(
                    document.error(
                        f"the kernel `{kernel.name}` is there twice", f"first in {found[kernel.name].folder}"
                    )
                )
            found[kernel.name] = kernel
    if not found and len(problems) == before:
        problems.append(_no_kernel(folder))
        broken[""] = Span(str(folder))
    return found


def _kernel_files(folder: Path) -> list[Path]:
    if folder.name == KERNEL_FILE and folder.is_file():
        return [folder]
    own = folder / KERNEL_FILE
    return [own] if own.is_file() else sorted(folder.glob(f"*/{KERNEL_FILE}"))


def _no_kernel(folder: Path) -> Diagnostic:
    place = Span(str(folder))
    if not folder.is_dir():
        return Diagnostic("there is no such kernel directory", place, near_file(folder))
    return Diagnostic("there is no kernel in it", place, f"a kernel is a folder with a {KERNEL_FILE}, one level below")


def _documents(path: Path, problems: Problems, broken: dict[str, Span]) -> tuple[Marked, ...]:
    try:
        return read_yaml(path)
    except GapFuseError as e:
        problems.extend(e.diagnostics)
        broken[""] = Span(str(path))
        return ()


def read_kernel(m: Marked, folder: Path, origin: str, problems: Problems) -> Kernel | None:
    """One document of a kernel.yaml; None where it has problems (which are added)."""
    before = len(problems)
    if (rule := m.get("rule")) is not None and m.get("kernel") is None:
        problems.append(rule.error("this is a rule, not a kernel", "name its folder with --rules"))
        return None
    if not KernelFile.check(m, "a kernel", problems):
        return None
    sig = m.get("signature")
    if sig is None or not SignatureSection.check(sig, "the signature", problems):
        return None
    name = as_text(m.get("kernel"), "the kernel's name", problems) or ""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        problems.append(
            (m.get("kernel") or m).error(f"`{name}` is not a kernel name", "lower-case letters, digits and _")
        )
    inputs = _types(sig.get("inputs"), "an input", parse_operand, problems)
    outputs = _types(sig.get("outputs"), "an output", parse_operand, problems)
    kernel = Kernel(
        name=name,
        summary=as_text(m.get("summary"), "the summary", problems) or "",
        folder=folder,
        inputs=inputs,
        outputs=outputs,
        attrs=_types(sig.get("attrs"), "an attribute", parse_attr, problems),
        sizes=_sizes(sig.get("sizes") or m.get("sizes"), problems),
        where=read_conditions(sig.get("where") or m.get("where"), "where", problems),
        dtypes=_dtypes(m.get("dtypes") or sig.get("dtypes"), problems),
        semantics=_semantics(m.get("semantics"), problems),
        axes=_axes(m.get("axes"), problems),
        access=_access(m.get("access"), problems),
        outside=_outside(m.get("outside"), problems),
        implementations=tuple(
            i
            for item in as_list(m.get("implementations"), "implementations", problems)
            if (i := read_implementation(item, inputs + outputs, problems)) is not None
        ),
        view=cast(
            "Literal['reshape', 'transpose', 'slice', 'concat'] | None",
            as_choice(m.get("view"), "view", VIEWS, problems),
        ),
        frame=_frame(m.get("frame"), problems),
        origin=origin,
    )
    if len(problems) == before:
        check_kernel(kernel, m, problems)
    return kernel if len(problems) == before else None


def _types(m: Marked | None, what: str, parse: Callable[[str, str], T], problems: Problems) -> tuple[T, ...]:
    result: list[T] = []
    for key, value in pairs(m, f"{what}s", problems):
        text = as_text(value, f"{what}'s type", problems)
        if text is None:
            continue
        try:
            result.append(parse(key.text, text))
        except SignatureError as e:
            problems.append(value.error(str(e), e.help))
    return tuple(result)


def _sizes(m: Marked | None, problems: Problems) -> tuple[tuple[str, Expr], ...]:
    result = []
    for key, value in pairs(m, "sizes", problems):
        given = value.kind == "scalar" and value.text.strip() == "given"
        expr = Name("given") if given else read_expression(value, "a size", problems)
        if not re.fullmatch(r"\*?[A-Z][A-Za-z0-9_]*", key.text):
            problems.append(
                key.error(f"`{key.text}` is not a size symbol", "symbols start with a capital; groups are written `*S`")
            )
        if expr is not None:
            result.append((key.text, expr))
    return tuple(result)


def _dtypes(m: Marked | None, problems: Problems) -> Mapping[str, tuple[str, ...]]:
    return {key.text: as_texts(value, "dtypes", problems) for key, value in pairs(m, "dtypes", problems)}


def _semantics(m: Marked | None, problems: Problems) -> tuple[str, str] | None:
    text = as_text(m, "semantics", problems)
    if m is None or text is None:
        return None
    file, colon, function = text.partition(":")
    if not colon or not file.endswith(".py") or not function.isidentifier():
        problems.append(m.error(f"`{text}` is no function of a file", "write `reference.py:NAME`"))
        return None
    return file, function


def _axes(m: Marked | None, problems: Problems) -> tuple[tuple[str, str], ...]:
    result = []
    for key, value in pairs(m, "axes", problems):
        text = as_text(value, "an axis' extent", problems)
        if not re.fullmatch(r"[a-z][a-z0-9_]*", key.text):
            problems.append(key.error(f"`{key.text}` is not an axis name", "axes are lower-case words"))
        if text is not None:
            result.append((key.text, text))
    return tuple(result)


def _access(m: Marked | None, problems: Problems) -> tuple[Access, ...]:
    if m is None:
        return ()
    if m.kind != "scalar":
        problems.append(m.error("access is text: one `operand[index, ...]` a line, after `access: |`"))
        return ()
    result = []
    for row, line in enumerate(m.text.split("\n")):
        code = line.split("#")[0].rstrip()
        if not code.strip():
            continue
        lead = len(code) - len(code.lstrip())
        try:
            operand, index = parse_access(code)
        except ExprError as e:
            problems.append(m.error_at(row, lead + e.col, lead + max(e.end, e.col + 1), e.message))
            continue
        result.append(Access(operand, index))
    return tuple(result)


def _frame(m: Marked | None, problems: Problems) -> Frame | None:
    if m is None or not FrameSection.check(m, "the frame", problems):
        return None
    of, fill = (as_text(m.get(key), f"the frame's `{key}`", problems) for key in ("of", "fill"))
    return Frame(of or "", fill or "")


def _outside(m: Marked | None, problems: Problems) -> Mapping[str, Outside]:
    result: dict[str, Outside] = {}
    for key, value in pairs(m, "outside", problems):
        if not OutsideSection.check(value, "outside", problems):
            continue
        do = as_choice(value.get("do"), "do", ("border", "skip", "never"), problems)
        if do is not None:
            text = as_text(value.get("value"), "the border's value", problems)
            result[key.text] = Outside(cast("Literal['border', 'skip', 'never']", do), text)
    return result
