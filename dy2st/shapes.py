"""Symbolic extents: integer polynomials over named symbols, so that one Program serves every shape.

An extent is an `int` or a `Dim`. A Dim is kept in a canonical form (a sorted sum of coefficient times monomial), so
two extents are provably equal exactly when they compare equal. Quotients that do not divide stay opaque atoms.

>>> n = symbol("N")
>>> str((n + 1) * 2), (n * 2) // 2 == n, n - n
('2*N + 2', True, 0)
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

Monomial = tuple[str, ...]
Terms = tuple[tuple[Monomial, int], ...]


class Dim:
    """Hold one symbolic extent; immutable, hashable, equal when provably equal."""

    __slots__ = ("_hash", "is_symbol", "terms")
    terms: Terms
    is_symbol: bool
    """Whether this is one symbol, or another atom, and nothing more."""

    def __init__(self, terms: Terms):
        self.terms = terms
        self._hash = hash(terms)
        self.is_symbol = len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Dim) and self.terms == other.terms)

    def __add__(self, other: Extent) -> Extent:
        return _make(_sum(self.terms, _terms(other)))

    __radd__ = __add__

    def __neg__(self) -> Extent:
        return self * -1

    def __sub__(self, other: Extent) -> Extent:
        return self + other * -1

    def __rsub__(self, other: Extent) -> Extent:
        return (self * -1) + other

    def __mul__(self, other: Extent) -> Extent:
        product: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in _terms(other):
                key = tuple(sorted(left + right))
                product[key] = product.get(key, 0) + a * b
        return _make(product)

    __rmul__ = __mul__

    def __floordiv__(self, other: Extent) -> Extent:
        return _quotient(self, other)

    def symbols(self) -> list[str]:
        """Return the atoms of this extent, sorted, each once."""
        return sorted({atom for monomial, _ in self.terms for atom in monomial})

    def __str__(self) -> str:
        if self.is_symbol:
            return self.terms[0][0][0]
        parts: list[str] = []
        for monomial, coefficient in self.terms:
            body = "*".join(monomial)
            if not monomial:
                text = str(abs(coefficient))
            else:
                text = body if abs(coefficient) == 1 else f"{abs(coefficient)}*{body}"
            sign = "-" if coefficient < 0 else "+"
            parts.append(f" {sign} {text}" if parts else ("-" if coefficient < 0 else "") + text)
        return "".join(parts)

    __repr__ = __str__


Extent = int | Dim
Shape = tuple[Extent, ...]


def symbol(name: str) -> Dim:
    """Return the extent named `name`."""
    return Dim((((name,), 1),))


def divide(a: Extent, b: Extent) -> Extent | None:
    """Return a / b where it divides provably, else None."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b and a % b == 0 else None
    divisor = _terms(b)
    if len(divisor) != 1:
        return 1 if a == b else None
    monomial, coefficient = divisor[0]
    result: dict[Monomial, int] = {}
    for left, factor in _terms(a):
        rest = list(left)
        if not coefficient or factor % coefficient:
            return None
        for atom in monomial:
            if atom not in rest:
                return None
            rest.remove(atom)
        result[tuple(rest)] = factor // coefficient
    return _make(result)


def _quotient(a: Extent, b: Extent) -> Extent:
    found = divide(a, b)
    return symbol(f"floordiv({a}, {b})") if found is None else found


def broadcast(a: Extent, b: Extent) -> Extent:
    """Return the extent to which two extents broadcast, given that they do.

    The order in which extents meet and how often they do makes no difference, so the name says which they are.

    >>> n, m = symbol("N"), symbol("M")
    >>> str(broadcast(m, n)), broadcast(n, broadcast(m, n)) == broadcast(m, n), broadcast(n, 4), broadcast(n, 1) == n
    ('bcast(M, N)', True, 4, True)
    """
    found = {str(extent): extent for extent in (*met(a), *met(b)) if extent != 1}
    for extent in found.values():
        if isinstance(extent, int):
            return extent
    if len(found) > 1:
        return symbol(f"bcast({', '.join(sorted(found))})")
    return next(iter(found.values()), 1)


def met(extent: Extent) -> list[Extent]:
    """Return the extents that met in one that `broadcast` named; for another one, itself.

    >>> met(broadcast(symbol("N"), symbol("M"))), met(symbol("N") + 1)
    ([M, N], [N + 1])
    """
    if not isinstance(extent, Dim) or not extent.is_symbol:
        return [extent]
    name = extent.terms[0][0][0]
    return list(_met(name)) if name.startswith("bcast(") else [extent]


@functools.lru_cache(4096)
def _met(name: str) -> tuple[Extent, ...]:
    """Return the extents that a name of `broadcast` says."""
    return tuple(map(parse_extent, _split(name.removeprefix("bcast(")[:-1], ", ")))


def substituted(extent: Extent, known: Mapping[str, Extent]) -> Extent:
    """Return an extent with these extents for these symbols, also inside of `bcast(...)` and `floordiv(...)`.

    >>> n, m = symbol("N"), symbol("M")
    >>> substituted(broadcast(n, m) + n // 3, {"N": 7}), substituted(broadcast(n, m), {"N": 1})
    (9, M)
    """
    if not isinstance(extent, Dim):
        return extent
    total: Extent = 0
    for monomial, coefficient in extent.terms:
        term: Extent = coefficient
        for atom in monomial:
            term = term * _substituted_atom(atom, known)
        total = total + term
    return total


def _substituted_atom(atom: str, known: Mapping[str, Extent]) -> Extent:
    if atom in known:
        return known[atom]
    name, _, inside = atom.partition("(")
    if name not in ("bcast", "floordiv"):
        return symbol(atom)
    first, *others = (substituted(parse_extent(part), known) for part in _split(inside[:-1], ", "))
    if name == "floordiv":
        (by,) = others
        return first // by if isinstance(first, int) and isinstance(by, int) and by else _quotient(first, by)
    for other in others:
        first = broadcast(first, other)
    return first


def symbols_in(extent: Extent) -> set[str]:
    """Return the symbols of an extent, also those inside of `bcast(...)` and `floordiv(...)`.

    >>> sorted(symbols_in(broadcast(symbol("N"), symbol("M")) // 2 + 1))
    ['M', 'N']
    """
    return set(_SYMBOL.findall(str(extent)))


_SYMBOL = re.compile(r"[A-Za-z_][\w.]*(?![\w.(])")


def product(shape: Shape) -> Extent:
    """Return the number of elements of a shape."""
    total: Extent = 1
    for extent in shape:
        total = total * extent
    return total


@functools.lru_cache(4096)
def parse_extent(text: str) -> Extent:
    """Read back what `str` of an extent printed; ValueError when it is none.

    >>> parse_extent("2*N + 1") == symbol("N") * 2 + 1
    True
    """
    total: Extent = 0
    for piece in _split(text, " + "):
        for i, signed in enumerate(_split(piece, " - ")):
            term = _parse_term(signed.strip(), text)
            total = total + (-term if i else term)
    return total


def _parse_term(body: str, text: str) -> Extent:
    term: Extent = 1
    if body.startswith("-") and not body[1:].isdigit():
        term, body = -1, body[1:]
    for factor in _split(body, "*"):
        if re.fullmatch(r"-?[0-9]+", factor):
            term = term * int(factor)
        elif re.fullmatch(r"[A-Za-z_][\w.]*(\(.*\))?", factor):
            term = term * symbol(factor)
        else:
            raise ValueError(f"{text!r} is not an extent")
    return term


def _split(text: str, separator: str) -> list[str]:
    parts, depth, start, i = [], 0, 0, 0
    while i < len(text):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0 and text.startswith(separator, i):
            parts.append(text[start:i])
            i += len(separator)
            start = i
        else:
            i += 1
    return [*parts, text[start:]]


def _terms(value: Extent) -> Terms:
    if isinstance(value, Dim):
        return value.terms
    return (((), value),) if value else ()


def _sum(a: Terms, b: Terms) -> dict[Monomial, int]:
    total = dict(a)
    for monomial, coefficient in b:
        total[monomial] = total.get(monomial, 0) + coefficient
    return total


def _make(terms: dict[Monomial, int]) -> Extent:
    kept = tuple(sorted(((m, c) for m, c in terms.items() if c), key=lambda t: (-len(t[0]), t[0])))
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    return Dim(kept)
