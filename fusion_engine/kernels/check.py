"""What must hold between the fields of a kernel: names bound, index maps monotone, sources there."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fusion_engine.diagnostics import counted, did_you_mean
from fusion_engine.expr import Apply, Expr, ExprError, Name, names, parse_expr
from fusion_engine.kernels.descriptor import Implementation, Kernel, OperandType
from fusion_engine.kernels.signature import DTYPES
from fusion_engine.marked_yaml import Marked, Problems


def check_kernel(kernel: Kernel, m: Marked, problems: Problems) -> None:
    """Add a diagnostic for everything in `kernel` that does not hold together; `m` is its document, for the places."""
    check = _Checker(kernel, m, problems)
    check.operands()
    check.sizes()
    check.files()
    check.access()
    check.frame()
    for i, implementation in enumerate(kernel.implementations):
        check.implementation(implementation, m.get("implementations"), i)
    if kernel.view is None and not kernel.implementations:
        problems.append(m.error(f"the kernel `{kernel.name}` has neither implementations nor `view:`"))
    if kernel.view is None and kernel.semantics is None:
        problems.append(
            m.error(f"the kernel `{kernel.name}` has no `semantics:`", "write `semantics: reference.py:NAME`")
        )


class _Checker:
    def __init__(self, kernel: Kernel, m: Marked, problems: Problems) -> None:
        self.kernel, self.m, self.problems = kernel, m, problems
        self.symbols = {d.lstrip("*") for o in kernel.operands for d in o.dims if not d.isdigit()}
        self.symbols |= {s.lstrip("*") for s, _ in kernel.sizes}
        self.attrs = {a.name for a in kernel.attrs}
        self.groups = {d[1:] for o in kernel.operands for d in o.dims if d.startswith("*")}
        self.axes = dict(kernel.axes)
        self.optional = {o.name for o in kernel.inputs if o.optional}  # in formulas 1 where given, else 0

    def at(self, *path: str) -> Marked:
        """The value under the keys of `path`, or the deepest that exists."""
        m = self.m
        for key in path:
            m = m.get(key) or m
        return m

    def bound(self, expr: Expr, known: Iterable[str], m: Marked, what: str) -> None:
        known = set(known)
        for name in sorted(names(expr) - known):
            self.problems.append(m.error(f"`{name}` is not bound in {what}", did_you_mean(name, sorted(known))))

    def operands(self) -> None:
        kernel = self.kernel
        seen: set[str] = set()
        for name in (*(o.name for o in kernel.operands), *self.attrs, *self.axes):
            if name in seen:
                self.problems.append(
                    self.m.error(f"`{name}` names two things", "operands, attributes and axes share one namespace")
                )
            seen.add(name)
        for o in kernel.operands:
            if o.dtype not in DTYPES and o.dtype not in kernel.dtypes:
                hint = (
                    did_you_mean(o.dtype, (*DTYPES, *kernel.dtypes))
                    or f"declare it: `dtypes: {{{o.dtype}: [float32, int8]}}`"
                )
                self.problems.append(self._signature(o).error(f"`{o.dtype}` is no element type", hint))
        for name, options in kernel.dtypes.items():
            for dtype in options:
                if dtype not in DTYPES:
                    self.problems.append(
                        self.at("dtypes", name).error(f"`{dtype}` is no element type", did_you_mean(dtype, DTYPES))
                    )

    def _signature(self, o: OperandType) -> Marked:
        side = "inputs" if o in self.kernel.inputs else "outputs"
        return self.at("signature", side, o.name)

    def sizes(self) -> None:
        """Every symbol of an output is bound by an input or by `sizes`, and every formula reads bound names."""
        known = self.symbols | self.attrs
        for symbol, expr in self.kernel.sizes:
            m = self.at("signature", "sizes", symbol)
            if names(expr) != {"given"}:
                self.bound(expr, known, m, f"the size {symbol}")
        for text, expr in self.kernel.where:
            self.bound(expr, known, self.at("signature", "where"), f"`where: {text}`")
        bound = {d for o in self.kernel.inputs for d in o.dims} | {s for s, _ in self.kernel.sizes}
        for o in self.kernel.outputs:
            for d in o.dims:
                if not d.isdigit() and d not in bound:
                    self.problems.append(
                        self._signature(o).error(f"nothing says what the size {d} is", f"add `sizes: {{{d}: ...}}`")
                    )

    def files(self) -> None:
        kernel = self.kernel
        if kernel.semantics is None:
            return
        file, function = kernel.semantics
        path = kernel.folder / file
        if not path.is_file():
            self.problems.append(self.at("semantics").error(f"there is no file {file} in the kernel's folder"))
        elif not re.search(rf"^def {function}\b", path.read_text("utf-8", "replace"), re.M):
            self.problems.append(self.at("semantics").error(f"{file} defines no function `{function}`"))

    # ---- the iteration space ----

    def access(self) -> None:
        kernel, m = self.kernel, self.at("access")
        if kernel.view is not None:
            return
        for axis, extent in kernel.axes:
            self._extent(axis, extent)
        by_name = {o.name: o for o in kernel.operands}
        for access in kernel.access:
            operand = by_name.get(access.operand)
            if operand is None:
                self.problems.append(
                    m.error(f"`{access.operand}` is no operand", did_you_mean(access.operand, by_name))
                )
                continue
            if len(access.index) != len(operand.dims):
                text = f"`{operand.name}` has {counted(len(operand.dims), 'dim')}, its access {len(access.index)}"
                self.problems.append(m.error(text))
            for index, dim in zip(access.index, operand.dims, strict=False):
                if index is not None:
                    self._index(index, dim, operand, m)
        reached = {a.operand for a in kernel.access}
        for o in kernel.operands:
            if o.name not in reached and o.dims:
                self.problems.append(
                    m.error(f"no access says how `{o.name}` is indexed", f"add a line `{o.name}[...]`")
                )
        for name in kernel.outside:
            if name not in by_name:
                self.problems.append(self.at("outside").error(f"`{name}` is no operand", did_you_mean(name, by_name)))

    def frame(self) -> None:
        kernel, m = self.kernel, self.at("frame")
        if kernel.frame is None:
            return
        if kernel.frame.of not in {o.name for o in kernel.inputs}:
            self.problems.append(
                self.at("frame", "of").error(
                    f"`{kernel.frame.of}` is no input", did_you_mean(kernel.frame.of, [o.name for o in kernel.inputs])
                )
            )
        for name in ("pads", "value"):
            if name not in self.attrs:
                self.problems.append(m.error(f"a kernel with a frame has the attribute `{name}`"))

    def _extent(self, axis: str, extent: str) -> None:
        m = self.at("axes", axis)
        if extent.startswith("*"):
            if extent[1:] not in self.symbols:
                self.problems.append(m.error(f"`{extent}` is no group of the signature"))
            return
        if extent in self.groups:
            self.problems.append(m.error(f"`{extent}` is a group of axes, not a size", f'write "*{extent}"'))
            return
        try:
            self.bound(parse_expr(extent), self.symbols | self.attrs, m, f"the extent of {axis}")
        except ExprError as e:
            self.problems.append(m.error(e.message))

    def _index(self, index: Expr, dim: str, operand: OperandType, m: Marked) -> None:
        if dim.startswith("*") and not isinstance(index, Name):
            self.problems.append(m.error(f"the index of the group {dim} of `{operand.name}` is not an axis alone"))
        self.bound(index, set(self.axes) | self.symbols | self.attrs, m, f"the access of `{operand.name}`")
        reason = why_not_monotone(index, frozenset(self.axes))
        if reason:
            self.problems.append(
                m.error(f"the index map of `{operand.name}` {reason}", "use + - * // min max clamp, each axis once")
            )

    # ---- implementations ----

    def implementation(self, i: Implementation, listing: Marked | None, position: int) -> None:
        m = listing.items[position] if listing is not None and listing.kind == "list" else self.m
        axes = self._axis_names(i)
        operands = {o.name for o in self.kernel.operands}

        def here(key: str) -> Marked:
            return m.get(key) or m

        if i.rank is None and any(extent.startswith("*") for extent in self.axes.values()):
            help_ = "`rank: 1` sees any shape as at most one axis i0"
            self.problems.append(m.error("it takes a group of any rank but states no `rank`", help_))
        for key, used, known in (
            ("whole", i.whole, axes),
            ("team", tuple(i.team.replace(" ", "").split("*")) if i.team else (), {*axes, "largest"}),
            ("tile", tuple(i.tile or ()), axes),
            ("align", tuple(i.align or ()), operands),
            ("reads_at", tuple(i.reads_at or ()), operands),
            ("gather", i.gather, operands),
            ("pitch", i.pitch, operands),
            ("lines", i.lines, i.pitch),
            ("reuse", tuple(i.reuse or ()) + tuple(x for v in (i.reuse or {}).values() for x in v), operands),
            ("origin", tuple(o.split(".")[0] for o in i.origin), axes | operands),
            (_kept_key(i), i.accumulate.over if i.accumulate else (), axes),
        ):
            for name in used:
                if name not in known:
                    self.problems.append(
                        here(key).error(f"`{name}` is unknown in {key}", did_you_mean(name, sorted(known)))
                    )
        tile_names = axes | self.symbols | self.attrs | self.optional | {"cores"} | self._tile_extents(i)
        self.bound(i.cycles, tile_names, here("cycles"), "cycles")
        for s in i.scratch:
            self.bound(s.bytes, tile_names, here("scratch"), f"the bytes of `{s.name}`")
        for text, condition in i.when:
            self.bound(condition, self.symbols | self.attrs | self.optional, here("when"), f"`when: {text}`")
        for file in (i.source, i.generate[0] if i.generate else None):
            if file and not (self.kernel.folder / file).is_file():
                self.problems.append(here("source").error(f"there is no file {file} in the kernel's folder"))

    def _axis_names(self, i: Implementation) -> set[str]:
        result = set(self.axes)
        for axis, extent in self.kernel.axes:
            if extent.startswith("*"):
                result |= {f"{axis}{n}" for n in range(i.rank or 8)}
        return result

    def _tile_extents(self, i: Implementation) -> set[str]:
        """`x_h`: the extent of operand x's L1 tile along h; `x_i0` along the axes of a group."""
        dims = {f"{o.name}_{d.lower()}" for o in self.kernel.operands for d in o.dims if not d.startswith("*")}
        return dims | {f"{o.name}_{a}" for o in self.kernel.operands for a in self._axis_names(i)}


def _kept_key(i: Implementation) -> str:
    return "carry" if i.accumulate is not None and i.accumulate.ordered else "accumulate"


def why_not_monotone(index: Expr, axes: frozenset[str]) -> str | None:
    """Why an index map may not be monotone in each axis, or None: the tiler takes boxes from the corners of tiles."""
    twice = [a for a in sorted(axes) if _occurrences(index, a) > 1]
    if twice:
        return f"uses the axis {twice[0]} twice"
    return _bad_form(index, axes)


def _occurrences(expr: Expr, name: str) -> int:
    if isinstance(expr, Apply):
        return sum(_occurrences(a, name) for a in expr.args)
    return int(name in names(expr))


def _bad_form(expr: Expr, axes: frozenset[str]) -> str | None:
    if not isinstance(expr, Apply) or not names(expr) & axes:
        return None
    inner = next((reason for a in expr.args if (reason := _bad_form(a, axes))), None)
    moving = [bool(names(a) & axes) for a in expr.args]
    if inner or expr.fn in ("+", "-", "min", "max", "clamp"):
        return inner
    if expr.fn == "*" and sum(moving) == 1:
        return None
    if expr.fn in ("//", "ceildiv") and not moving[1]:
        return None
    return f"uses `{expr.fn}` on an axis, which need not be monotone"
