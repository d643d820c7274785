"""A progress bar on stderr, shown on a terminal once the work has taken two seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress

QUIET_SECONDS = 2.0

Tick = Callable[[int], None]
"""Called after each so many steps."""
Said = Callable[[str], None]
"""Called with what is done next, when what was done before is through."""


def no_progress(_: int) -> None:
    """For work that is short, or part of a longer one with a bar of its own."""


def nothing_said(_: str) -> None:
    """For work that is part of a longer one with a bar of its own."""


@contextmanager
def progress(what: str, total: int) -> Iterator[Tick]:
    """Yields the function that advances the bar."""
    with _late_bar() as bar:
        task = bar.add_task(what, total=total)
        yield lambda steps: bar.update(task, advance=steps)


@contextmanager
def stages(first: str, total: int) -> Iterator[Said]:
    """A bar over a few long stages: yields the function that says which one comes next."""
    with _late_bar() as bar:
        task = bar.add_task(first, total=total)
        yield lambda what: bar.update(task, advance=1, description=what)


def _late_bar() -> Progress:
    """Nothing is shown in the first seconds, nor where nobody looks."""
    from rich.console import Console
    from rich.progress import Progress

    start = time.monotonic()

    class Late(Progress):
        def get_renderables(self) -> Iterable[RenderableType]:
            return super().get_renderables() if time.monotonic() - start > QUIET_SECONDS else ()

    console = Console(stderr=True)
    return Late(console=console, transient=True, disable=not console.is_terminal)
