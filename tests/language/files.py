"""Small rule directories for the tests of the language."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

FRAGMENTS = """\
fragments:
  act(v) -> lo, hi:
    - Relu(v)                       with lo = 0.0, hi = inf
    - Clip(v, lo = -inf, hi = inf)
    - v                             with lo = -inf, hi = inf
  square(d):
    - d * d
    - Pow(d, 2.0)
  scaled(s) -> factor:
    - s / factor
    - s * factor_inv                with factor = 1.0 / factor_inv
    - s                             with factor = 1.0
"""

CLASSES = """\
classes:
  unary: [Abs, Exp, Tanh]
  more: [unary, Sigmoid]
"""


def write(folder: Path, rule: str, fragments: str = FRAGMENTS, classes: str = CLASSES, name: str = "r.yaml") -> Path:
    """A directory with fragments, classes and one rule."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fragments.yaml").write_text(fragments)
    (folder / "classes.yaml").write_text(classes)
    (folder / name).write_text(dedent(rule))
    return folder


def simple(pattern: str, given: str = "{x: real}", emit: str = "{kernel: k, args: {x: x}}", more: str = "") -> str:
    """A rule of one variant."""
    body = "\n".join("      " + line for line in pattern.split("\n"))
    return f"rule: r\ngiven: {given}\nmatch:\n  - pattern: |\n{body}\n{more}emit:\n  - {emit}\n"
