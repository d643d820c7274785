"""A progress bar on stderr, shown on a terminal once the work has taken two seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

QUIET_SECONDS = 2.0

Tick = Callable[[int], None]
"""Called after each so many steps."""


def no_progress(_: int) -> None:
    """For work that is short, or part of a longer one with a bar of its own."""


@contextmanager
def progress(what: str, total: int) -> Iterator[Tick]:
    """Yields the function that advances the bar."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    start = time.monotonic()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total, visible=False)
        yield lambda steps: bar.update(task, advance=steps, visible=time.monotonic() - start > QUIET_SECONDS)
