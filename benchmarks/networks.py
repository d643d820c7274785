"""The networks that the benchmarks measure: one that ships with the project, and eight from ../shared where that folder is present."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "bench"
MODELS = SHARED / "models"
NAMES = ("resnet8", "dscnn", "mobilenetv1_025", "autoencoder")


@dataclass(frozen=True, slots=True)
class Network:
    name: str
    kind: str  # "fp32" or "int8"
    path: Path

    @property
    def title(self) -> str:
        return f"{self.name} {self.kind}"


def networks() -> tuple[Network, ...]:
    """Every network that is there; a line on stderr says which are not."""
    digits = ROOT / "examples" / "digits"
    wanted = [
        Network("digits", "fp32", digits / "digits_fp32.onnx"),
        Network("digits", "int8", digits / "digits_int8.onnx"),
    ]
    for name in NAMES:
        wanted += [
            Network(name, "fp32", MODELS / f"{name}.onnx"),
            Network(name, "int8", MODELS / f"{name}_int8_qdq.onnx"),
        ]
    missing = [n.title for n in wanted if not n.path.is_file()]
    if missing:
        print(f"skipped, not in {MODELS}: {', '.join(missing)}", file=sys.stderr)
    return tuple(n for n in wanted if n.path.is_file())


def selected(pattern: str) -> tuple[Network, ...]:
    """The networks whose title contains `pattern`. Ends the program where there is none."""
    found = tuple(n for n in networks() if pattern in n.title)
    if not found:
        sys.exit(f"no network's name contains `{pattern}`")
    return found
