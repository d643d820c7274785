"""Random choices that can be replayed and made simpler: how a failing case becomes the smallest one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

T = TypeVar("T")
SHRINKS = 150  # replays at most while a failing case is made smaller


@dataclass
class Coverage:
    """How often each option of each choice was taken: the next draw takes the rarest, of the options `aimed` at by key
    where there are some."""

    counts: dict[Hashable, list[int]] = field(default_factory=dict)
    aimed: frozenset[tuple[Hashable, int]] = frozenset()

    def rarest(self, key: Hashable, options: int, rng: np.random.Generator) -> int:
        counts = self.counts.setdefault((key, options), [0] * options)
        open_ = [i for i in range(options) if (key, i) in self.aimed] or range(options)
        fewest = min(counts[i] for i in open_)
        least = [i for i in open_ if counts[i] == fewest]
        chosen = least[int(rng.integers(len(least)))]
        counts[chosen] += 1
        return chosen


class Choices:
    """Whole numbers below a bound, drawn or replayed from a script; 0 is the simplest of each.

    `taken` is the script that replays the same draws. Values of tensors come from `values`, a generator that depends on
    the seed alone.
    """

    def __init__(self, seed: int, coverage: Coverage | None = None, script: Sequence[int] | None = None) -> None:
        self.seed, self.coverage, self.script = seed, coverage, script
        self.taken: list[int] = []
        self._rng = np.random.default_rng([seed, 1])
        self.values = np.random.default_rng([seed, 2])

    def below(self, count: int, key: Hashable | None = None) -> int:
        """0..count-1; a choice with a `key` takes the option that was drawn least often."""
        if self.script is not None:
            at = len(self.taken)
            value = min(self.script[at], count - 1) if at < len(self.script) else 0
        elif key is not None and self.coverage is not None:
            value = self.coverage.rarest(key, count, self._rng)
        else:
            value = int(self._rng.integers(count))
        self.taken.append(value)
        return value

    def between(self, low: int, high: int) -> int:
        """low..high, both included."""
        return low + self.below(max(high - low, 0) + 1)

    def pick(self, options: Sequence[T], key: Hashable | None = None) -> T:
        return options[self.below(len(options), key)]

    def chance(self, key: Hashable | None = None) -> bool:
        return self.below(2, key) == 1


def smallest(script: Sequence[int], fails: Callable[[Sequence[int]], bool]) -> Sequence[int]:
    """A script near `script` that still fails and that no single simpler choice makes smaller, within SHRINKS tries."""
    best, tries, before = list(script), 0, None
    while before != best and tries < SHRINKS:
        before = list(best)
        for i in range(len(best)):
            for value in dict.fromkeys((0, best[i] // 2, best[i] - 1)):
                if value < 0 or value >= best[i] or tries >= SHRINKS:
                    continue
                tries += 1
                trial = [*best[:i], value, *best[i + 1 :]]
                if fails(trial):
                    best = trial
                    break
    return best
