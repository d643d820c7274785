"""Whether an emit entry's storages fit a match: the quantisation lens at the edges of the match and inside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any

import numpy as np

from fusion_engine.covering.types import Cause
from fusion_engine.graph import Quantisation
from fusion_engine.language.printing import stored_type_text
from fusion_engine.language.types import CaptureType, EmitEntry, StoredType
from fusion_engine.language.vocabulary import Binding
from fusion_engine.matching.facts import Facts
from fusion_engine.matching.state import InnerPair

FLOATS = ("it is float32", "it is float16", "it is float64")
MAX_CHOICES = 64  # ways to store the results of one match


@dataclass(frozen=True, slots=True)
class Made:
    """How one result is made: the value produced, what its integers mean (None: a real), the Q node absorbed."""

    name: str
    value: str
    produced: str
    quantisation: Quantisation | None
    node: int | None


def result_choices(facts: Facts, results: Mapping[str, str], entry: EmitEntry) -> Iterator[tuple[Made, ...]] | Cause:
    """Every way to store the results as the entry wants them, or why there is none. `results` maps names to values."""
    options: list[list[Made]] = []
    for name, value in results.items():
        wanted = entry.stored.get(name)
        made = _options(facts, name, value, wanted)
        if isinstance(made, str):
            return _not_stored_so(name, made, wanted)
        options.append(made)
    return islice(product(*options), MAX_CHOICES)


def _options(facts: Facts, name: str, value: str, wanted: StoredType | None) -> list[Made] | str:
    own = facts.view.values[value]
    if wanted is None or wanted.dtype == "float":
        return [Made(name, value, value, own.quantisation, None)]
    if own.dtype == wanted.dtype:
        reason = _unlike(name, wanted, own.quantisation, own.shape)
        return reason or [Made(name, value, value, own.quantisation, None)]
    found, reasons = [], []
    for q in facts.quantisers(value):
        reason = f"{name} is stored as {q.dtype}" if q.dtype != wanted.dtype else None
        reason = reason or _unlike(name, wanted, q.quantisation, own.shape)
        if reason is None:
            found.append(Made(name, value, q.name, q.quantisation, q.node))
        else:
            reasons.append(reason)
    if found:
        return found
    return reasons[0] if reasons else f"no {wanted.dtype} storage for {name}: it is {own.dtype or 'of unknown type'}"


def _not_stored_so(name: str, reason: str, wanted: StoredType | None) -> Cause:
    if wanted is None:
        return Cause(reason)
    change = "quantise the model, or leave the case to a float entry" if reason.endswith(FLOATS) else ""
    return Cause(reason, reason.partition(": ")[2], f"{name} stored as {stored_type_text(wanted)}", change, wanted.span)


def store_captures(
    facts: Facts, entry: EmitEntry, env: Mapping[str, Any], given: Mapping[str, CaptureType], results: tuple[str, ...]
) -> dict[str, Binding] | Cause:
    """Captures with the storage that the entry takes (constants quantised where need be), or the reason against."""
    changed: dict[str, Binding] = {}
    for name, wanted in entry.stored.items():
        if name in results or wanted.dtype == "float" or name not in env:
            continue
        value = env[name]
        parts = value if isinstance(value, tuple) else (value,)
        for part in parts:
            fitted = _fit(facts, name, part, wanted, given.get(name))
            if isinstance(fitted, str):
                return _not_stored_so(name, fitted, wanted)
            if fitted is not None and not isinstance(value, tuple):
                changed[name] = fitted
    return changed


def _fit(facts: Facts, name: str, value: Any, wanted: StoredType, given: CaptureType | None) -> Binding | str | None:
    """A binding to use instead, None where the bound one will do, or the reason against."""
    if not isinstance(value, Binding):
        return None  # absent, or a number: the entry's expressions give it a meaning
    constant = value.const is not None
    if wanted.dtype == "int32" and constant:
        return None  # a bias: stored(b, scale) computes it at compile time
    if value.quantisation is None:
        return _at_compile_time(value, wanted, given) or f"no {wanted.dtype} storage for {name}: it is {value.dtype}"
    dtype = None if value.stored is None else facts.view.values[value.stored].dtype
    if dtype is not None and dtype != wanted.dtype:
        return f"no {wanted.dtype} storage for {name}: it is stored as {dtype}"
    return _unlike(name, wanted, value.quantisation, value.shape)


def _unlike(
    name: str, wanted: StoredType, quantisation: Quantisation | None, shape: tuple[Any, ...] | None
) -> str | None:
    """What of an existing quantisation the entry does not take."""
    if quantisation is None:
        return None
    if wanted.symmetric and any(quantisation.zero):
        return f"{name} zero point is not 0"
    axis = quantisation.axis
    if axis is None or len(quantisation.scale) == 1:
        return None
    if wanted.axis is None:
        return f"{name} is quantised along axis {axis}, not as a whole"
    rank = len(shape) if shape is not None else 0
    expected = wanted.axis % rank if rank else wanted.axis
    return None if axis == expected else f"{name} is quantised along axis {axis}, not {expected}"


def _at_compile_time(value: Binding, wanted: StoredType, given: CaptureType | None) -> Binding | None:
    """A float constant operand of, say, Add as int8: only where the rule does not call it a weight, or exactly."""
    if value.const is None or value.const.dtype.kind != "f" or wanted.dtype != "int8":
        return None
    real = np.asarray(value.const, dtype=np.float64)
    greatest = float(np.max(np.abs(real), initial=0.0))
    if not np.isfinite(greatest):
        return None
    scale = greatest / 127 if greatest > 0 else 1.0
    steps = np.rint(real / scale).astype(np.int8)
    exact = bool(np.all(np.abs(steps * scale - real) <= 1e-6 * scale))
    if given is not None and given.const and not exact:
        return None
    return replace(value, quantisation=Quantisation((scale,), (0,)), stored_const=steps)


def inner_misfit(
    facts: Facts, entry: EmitEntry, pairs: tuple[InnerPair, ...], env: Mapping[str, Any], made: tuple[Made, ...]
) -> Cause | None:
    """Why the entry may not absorb the quantisations inside the match."""
    allowed = dict(entry.inner)
    stored = {b.stored for n in entry.stored if isinstance(b := env.get(n), Binding)}
    for pair in pairs:
        label = pair.label.split(".")[-1]
        if pair.moved and any(m.quantisation == pair.quantisation for m in made):
            continue
        if facts.view.nodes[pair.nodes[-1]].outputs[0] in stored:
            continue  # the entry takes it with a scale of its own
        if pair.label not in allowed:
            change = (
                f"`inner: {{{label}: same_as(y)}}` allows a quantisation equal to that of the result y, "
                f"`stored: {{{label}: int8}}` any: the kernel must round as it does"
            )
            return Cause(f"{label} is quantised inside the match", "QuantizeLinear - DequantizeLinear", "none", change)
        like = env.get(allowed[pair.label])
        if not isinstance(like, Binding) or like.quantisation != pair.quantisation:
            like_name = allowed[pair.label]
            return Cause(
                f"{label} is quantised inside the match unlike {like_name}", "another scale", f"as {like_name}"
            )
    return None
