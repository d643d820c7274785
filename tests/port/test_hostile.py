"""What the hostile port must catch: each snippet breaks one rule, and the program must end in that rule's message."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.port.building import compile_port

MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gf_runtime.h"
static gf_ticket t, u;
#define LOAD(far, near, n, ticket) gf_copy_bytes(GF_L2_L1, GF_IN, GF_L2(far), GF_L1(near), n, ticket)
#define STORE(far, near, n, ticket) gf_copy_bytes(GF_L2_L1, GF_OUT, GF_L2(far), GF_L1(near), n, ticket)
#define COMMAND(run, runs, pitch) gf_copy_start(GF_L2_L1, GF_IN, &(gf_move){0, GF_L1(0), run, runs, pitch}, 1, &t)
static int dirty;
static unsigned char some[64];
static void fine(const void *p) { (void)p; }
static void copies(const void *p) { (void)p; gf_copy_bytes(GF_L2_L1, GF_IN, GF_L2(0), GF_L1(0), 4, &t); }
static void waits(const void *p) { (void)p; gf_copy_wait(&t); }
static void stores(const void *p) { (void)p; if (gf_core_id() == 0) STORE(0, 0, 8, &t); }
static void writes(const void *p) { ((volatile unsigned char *)p)[gf_core_id()] ^= 0x5a; }
static void reads(const void *p) { dirty = ((const volatile unsigned char *)p)[0]; }
int main(int argc, char **argv) {
  (void)argc, (void)some, (void)fine, (void)copies, (void)waits, (void)reads, (void)stores, (void)writes;
  gf_host.timing = (gf_timing)atoi(argv[1]);
  gf_port_open();
  gf_call_begin(0);
  switch (atoi(argv[2])) {
CASES
  }
  gf_port_close();
  return dirty & 1;
}
"""

BROKEN = {
    "a ticket was waited for that is not open": "LOAD(0, 0, 8, &t); gf_copy_wait(&t); gf_copy_wait(&t);",
    "copies were never waited for": "LOAD(0, 0, 8, &t);",
    "a copy of the call before was never waited for": "LOAD(0, 0, 8, &t); gf_call_begin(1);",
    "a copy in touches bytes in flight": "LOAD(0, 0, 8, &t); LOAD(64, 4, 8, &u); gf_copy_wait(&t); gf_copy_wait(&u);",
    "a copy out touches bytes in flight": "LOAD(0, 0, 8, &t); STORE(64, 4, 8, &u);",
    "the source of a copy changed while in flight": "STORE(0, 0, 8, &t); *(char *)GF_L1(3) ^= 1; gf_copy_wait(&t);",
    "a copy was started inside gf_team_run": "gf_team_run(copies, NULL);",
    # a store before the join of those who write the tile: from inside the team, and ahead of it
    "call 0: a copy was started inside gf_team_run": "gf_team_run(stores, NULL);",
    "call 0: the source of a copy changed": "STORE(0, 0, 8, &t); gf_team_run(writes, GF_L1(0)); gf_copy_wait(&t);",
    "the kernel wrote before level L1": "gf_team_run(writes, (char *)GF_L1(0) - 8);",
    "the kernel wrote beyond level L1: byte 4096 of 4096": "gf_team_run(writes, GF_L1(4096));",
    "the kernel wrote beyond level L1: byte 4104": "gf_team_run(writes, GF_L1(4104));",
    "a copy was waited for inside gf_team_run": "LOAD(0, 0, 8, &t); gf_team_run(waits, NULL);",
    "a ticket was not zero-initialised": "memset(&t, 7, sizeof t); LOAD(0, 0, 8, &t);",
    "lie outside level L1": "LOAD(0, 4090, 8, &t);",
    "lie outside level L2": "LOAD(16380, 0, 8, &t);",
    "near side below its level": "gf_copy_bytes(GF_L2_L1, GF_IN, 0, (char *)GF_L1(0) - 64, 8, &t);",
    "a command of 1 x 201 bytes exceeds l2_l1": "COMMAND(201, 1, 0);",
    "l2_l1 has no pitch of 301": "COMMAND(2, 3, 301);",
    "an empty command": "COMMAND(0, 1, 0);",
    "a copy touches a tensor that stays in L1": "LOAD(0, 1020, 8, &t);",
}  # fmt: skip
FINE = (
    "LOAD(0, 0, 512, &t); LOAD(512, 512, 512, &u); gf_copy_wait(&u); gf_copy_wait(&t);"
    "gf_team_run(fine, NULL); STORE(0, 0, 512, &t); gf_copy_wait(&t);"
    "LOAD(0, 0, 8, &t); LOAD(8, 8, 8, &t); gf_copy_wait(&t);"
)
FULL = (  # the engine of l2_l1 holds four commands: the fifth waits for the first, which may be read then
    "for (int i = 0; i < 5; i++) LOAD(64 * i, 64 * i, 64, &t); gf_team_run(reads, GF_L1({at})); gf_copy_wait(&t);"
)
FORGOTTEN = (  # between calls all of L1 is dead but for what stays, bytes 1024 to 1535
    "memset(GF_L1(0), 0x5a, 4096); gf_call_begin(1); const unsigned char *l1 = GF_L1(0); int kept = 0;"
    "for (int i = 0; i < 4096; i++) kept += l1[i] == 0x5a && (i < 1024 || i >= 1536);"
    "for (int i = 1024; i < 1536; i++) dirty |= l1[i] != 0x5a;"
    "dirty |= kept > 512;"  # poison may equal a byte now and then, not often
)
EARLY = (  # bytes 2048 to 2111 are what the first call starts for the second: they may travel, and are not forgotten
    "memset(some, 0x5a, 64); gf_put(GF_LEVEL_L2, 0, some, 64);"
    "LOAD(0, 2048, 64, &t); gf_call_begin(1); gf_copy_wait(&t);"
    "const unsigned char *l1 = GF_L1(2048); for (int i = 0; i < 64; i++) dirty |= l1[i] != 0x5a;"
)
UNLANDED = "LOAD(0, 0, 64, &t); gf_team_run(reads, GF_L1(16)); gf_copy_wait(&t);"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Plain and sanitized."""
    folder = tmp_path_factory.mktemp("hostile")
    cases = [*BROKEN.values(), FINE, UNLANDED, FULL.format(at=16), FULL.format(at=80), FORGOTTEN, EARLY]
    text = "\n".join(f"  case {i}: {{ {code} }} break;" for i, code in enumerate(cases))
    main = folder / "main.c"
    main.write_text(MAIN.replace("CASES", text))
    plain = compile_port(folder, main=main)
    plain = plain.rename(folder / "plain")
    return plain, compile_port(folder, "-fsanitize=address,undefined", "-fno-sanitize-recover=all", main=main)


def _run(program: Path, timing: int, case: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(program), str(timing), str(case)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("message", BROKEN)
def test_a_broken_rule_ends_in_its_message(programs: tuple[Path, Path], message: str) -> None:
    done = _run(programs[0], 1, list(BROKEN).index(message))
    assert done.returncode != 0
    assert message in done.stderr


@pytest.mark.parametrize("timing", [0, 1, 2])
def test_a_correct_sequence_passes(programs: tuple[Path, Path], timing: int) -> None:
    for program in programs:
        done = _run(program, timing, len(BROKEN))
        assert done.returncode in (0, 1), done.stderr
        assert done.stderr == ""


@pytest.mark.parametrize("at", ["before", "beyond"])
def test_writing_outside_l1_is_seen_by_the_sanitizer(programs: tuple[Path, Path], at: str) -> None:
    case = next(i for i, message in enumerate(BROKEN) if f"wrote {at}" in message)
    assert "use-after-poison" in _run(programs[1], 1, case).stderr


def test_reading_a_tile_before_it_landed_is_seen_by_the_sanitizer(programs: tuple[Path, Path]) -> None:
    done = _run(programs[1], 1, len(BROKEN) + 1)
    assert "use-after-poison" in done.stderr


def test_a_full_engine_lands_its_oldest_command(programs: tuple[Path, Path]) -> None:
    first, second = (_run(programs[1], 1, len(BROKEN) + 2 + k) for k in (0, 1))
    assert first.stderr == ""
    assert "use-after-poison" in second.stderr


def test_a_call_begins_with_nothing_in_l1_but_what_stays(programs: tuple[Path, Path]) -> None:
    for program in programs:
        done = _run(program, 1, len(BROKEN) + 4)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("timing", [0, 1, 2])
def test_a_tile_started_early_reaches_the_next_call(programs: tuple[Path, Path], timing: int) -> None:
    for program in programs:
        done = _run(program, timing, len(BROKEN) + 5)
        assert done.returncode == 0, done.stderr
