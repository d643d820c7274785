"""The host port compiled with small memories and tight limits."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.conftest import ROOT
from tiler.moves import HopLimits

L1, L2, L3 = 4096, 16384, 16384
LIMITS = {"l2_l1": HopLimits(200, 300), "l3_l2": HopLimits(128, 200)}
AHEAD = "{{2048, 64, 0, 1}}"  # a tile that the first call starts for the second
STAYS = "{{1024, 512, 0, 1}}"  # a tensor that stays in L1 from the first call to the second
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE")


def prepare(folder: Path) -> list[str]:
    """Write gf_config.h; returns the compiler's include options."""
    limits = ", ".join(f"{{{h.max_bytes}u, {h.max_pitch}u, {h.dims}}}" for h in LIMITS.values())
    (folder / "gf_config.h").write_text(
        f"#define GF_L1_BYTES {L1}\n#define GF_L2_BYTES {L2}\n#define GF_L3_BYTES {L3}\n"
        "#define GF_CORES 8\n#define GF_CALLS 2\n"
        f'#define GF_CALL_NAMES {{"first", "second"}}\n#define GF_HOP_LIMITS {{{limits}}}\n'
        "#define GF_HOP_IN_FLIGHT {4, 2}\n"
        f"#define GF_STAYS {STAYS}\n#define GF_AHEAD {AHEAD}\n#define GF_ROLLS {{{{0, -1}}}}\n"
    )
    rooms = (folder, ROOT / "targets" / "common", ROOT / "targets" / "host", ROOT / "kernels" / "common")
    return [f"-I{room}" for room in rooms]


def compile_port(folder: Path, *options: str, main: Path | None = None) -> Path:
    """A shared library, or a program around `main`."""
    sources = [ROOT / "targets" / "common" / "gf_copy.c", ROOT / "targets" / "host" / "gf_port_host.c"]
    out = folder / ("program" if main else "port.so")
    kind = [str(main)] if main else ["-shared", "-fPIC"]
    command = ["gcc", *WARNINGS, "-g", *prepare(folder), *options, *kind, *map(str, sources), "-o", str(out), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out
