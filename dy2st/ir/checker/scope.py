"""The extents of one function: which symbols stand for what, and how values enter blocks and functions.

A symbol is born at one place: an axis of an argument, or of a result known only at run time. What a file calls such an
extent is kept where the name is free. A claim that is not proved is forgotten: its place gets a symbol of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dy2st.ir.checker.type_join import Known, at_least_zero, names_in, parts, plain_name, with_parts
from dy2st.ir.program import Value
from dy2st.ir.types import ListType, ScalarType, TensorType, Type
from dy2st.shapes import Extent, symbol

Path = tuple[int, ...]
Site = tuple[Value, Path]
Choice = Callable[[Site, Known, Known, bool], Known]
"""Says what an extent is: its place, what is declared, what is given, and whether it may stay unknown (None)."""


class Scope:
    """Symbols of a function that is being checked."""

    def __init__(self) -> None:
        self.visible: set[str] = set()
        self.weak: set[Site] = set()
        """Places whose claims did not hold."""
        self._taken: dict[str, Site] = {}
        self._names: dict[Site, Extent] = {}
        self._count = 0

    def begin(self) -> None:
        """Forget which symbols are visible; who has which name stays."""
        self.visible.clear()

    def born(self, site: Site, declared: Known) -> Extent:
        """Return the symbol of a place: the declared name where it is free, else a new one."""
        found = self._names.get(site)
        if found is None:
            name = plain_name(declared)
            if name is None or name in self._taken:
                name = self._fresh()
            self._taken[name] = site
            found = self._names[site] = symbol(name)
        self.visible.add(str(found))
        return found

    def _fresh(self) -> str:
        while f"u{self._count}" in self._taken:
            self._count += 1
        return f"u{self._count}"

    def is_free(self, name: str, site: Site) -> bool:
        """Return whether a name may be given to this place."""
        return self._taken.get(name, site) == site

    def sees(self, extent: Known) -> bool:
        """Return whether all symbols of an extent are visible."""
        return self.visible.issuperset(names_in(extent))

    def settled(self, value: Value, derived: Type) -> Type:
        """Return a derived type in which what only the run tells has symbols."""

        def choose(site: Site, declared: Known, known: Known, may: bool) -> Known:
            return known if known is not None or may else self.born(site, declared)

        return walk(choose, value, value.type, derived)

    def entered(self, arguments: Sequence[Value], given: Sequence[Type], local: dict[str, Known]) -> None:
        """Give the arguments of a block the types of what enters, in their own symbols where these say no more.

        `local` says what the block's own symbols are outside.
        """

        def choose(site: Site, declared: Known, known: Known, may: bool) -> Known:
            if declared is None or (known is None and may):
                return None
            if site in self.weak:
                return None if may else self.born(site, declared)
            if declared == known:
                return known
            if may:  # only arguments of functions give numbers names of their own
                return None
            name = plain_name(declared)
            if name in local:
                return declared if known is not None and local[name] == known else self._own(site, known)
            if name is not None and self.is_free(name, site):
                local[name] = known
                return self.born(site, declared)
            return self._own(site, known)

        for argument, t in zip(arguments, given, strict=True):
            argument.type = walk(choose, argument, argument.type, t)

    def _own(self, site: Site, known: Known) -> Known:
        return known if known is not None else self.born(site, None)

    def fits(self, arguments: Sequence[Value], given: Sequence[Type], local: dict[str, Known], own: set[str]) -> bool:
        """Return whether what enters a block fits the types of its arguments; note the places where it does not.

        The symbols `own` are bound anew by each entry; `local` says by what.
        """
        before = len(self.weak)

        def choose(site: Site, held: Known, known: Known, may: bool) -> Known:
            if held is None:
                return held
            name = plain_name(held)
            if name in own:
                if name not in local and (not may or at_least_zero(known)):
                    local[name] = known
                    return held
                known, held = (known, local.get(name)) if name in local else (None, held)
            if known is None or known != held:
                self.weak.add(site)
            return held

        for argument, t in zip(arguments, given, strict=True):
            walk(choose, argument, argument.type, t)
        return len(self.weak) == before


def walk(choose: Choice, value: Value, declared: Type, given: Type, path: Path = (), inside: bool = False) -> Type:
    """Return `given` with extents that `choose` says; both types are of one kind. In lists extents may be unknown."""
    if isinstance(given, TensorType) and isinstance(declared, TensorType):
        pairs = enumerate(zip(declared.shape, given.shape, strict=True))
        shape = tuple(choose((value, (*path, i)), a, b, inside) for i, (a, b) in pairs)
        return given if shape == given.shape else TensorType(given.dtype, shape)  # type: ignore[arg-type]
    if isinstance(given, ScalarType) and isinstance(declared, ScalarType):
        known = choose((value, (*path, 0)), declared.extent, given.extent, True)
        return given if known == given.extent else ScalarType(given.kind, known)
    inner = parts(given)
    inside = inside or isinstance(given, ListType)
    pairs = enumerate(zip(parts(declared), inner, strict=True))
    made = tuple(walk(choose, value, a, b, (*path, i), inside) for i, (a, b) in pairs)
    return given if made == inner else with_parts(given, made)
