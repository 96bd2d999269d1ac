"""`einsum`: sums of products written as an equation of axis labels, as matrix products of two operands at a time."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from dy2st.functions.core.operands import together
from dy2st.functions.linalg.linalg import matmul
from dy2st.functions.math import reduction
from dy2st.functions.shape.broadcasting import common_shape, expand
from dy2st.functions.shape.diagonals import diagonal
from dy2st.functions.shape.manipulation import reshape_to, transpose
from dy2st.runtime.eager.tensor import Tensor

Labelled = tuple[Tensor, str]


def einsum(equation: str, *operands: Any) -> Tensor:
    """Return the sums of products that an equation names, such as "ij,jk->ik"; "..." stands for any axes, broadcast.

    Without "->" the result has the labels that occur once, in alphabetical order. Raises ValueError for an equation
    that does not fit the operands.

    >>> import dy2st as paddle
    >>> paddle.einsum("ij,j->i", paddle.to_tensor([[1.0, 2.0]]), paddle.to_tensor([3.0, 4.0])).tolist()
    [11.0]
    """
    given = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    tensors = together(list(given), "einsum")
    terms, out = _parsed(equation, tensors)
    sizes = _sizes(tensors, terms)
    parts = [_without_repeats(*_expanded(t, term, sizes)) for t, term in zip(tensors, terms, strict=True)]
    while len(parts) > 1:
        (first, second), rest = parts[:2], parts[2:]
        needed = set(out).union(*(term for _, term in rest))
        parts = [_product(first, second, needed), *rest]
    found, term = _summed(parts[0], set(out))
    return transpose(found, [term.index(label) for label in out]) if term != out else found


def _parsed(equation: str, tensors: Sequence[Tensor]) -> tuple[list[str], str]:
    """Return the labels of each operand and of the result, "..." replaced by labels of their own."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(tensors):
        raise ValueError(f"einsum: {equation!r} has {len(terms)} operands, {len(tensors)} were given")
    free = [c for c in string.ascii_letters if c not in equation]
    most = max((t.ndim - len(term.replace("...", "")) for term, t in zip(terms, tensors, strict=True) if "..." in term),
               default=0)  # fmt: skip
    if most < 0 or most > len(free):
        raise ValueError(f"einsum: {equation!r} names more axes than an operand has")
    spread = "".join(free[:most])
    full: list[str] = []
    for term, t in zip(terms, tensors, strict=True):
        count = t.ndim - len(term.replace("...", ""))
        full.append(term.replace("...", spread[most - count :] if count > 0 else ""))
        if count < 0 or len(full[-1]) != t.ndim or not all(c in string.ascii_letters for c in full[-1]):
            raise ValueError(f"einsum: {term!r} does not name the axes of a tensor of shape {t.shape}")
    if arrow:
        out = right.replace("...", spread)
    else:
        joined = "".join(full)
        out = spread + "".join(sorted(c for c in set(joined) - set(spread) if joined.count(c) == 1))
    if len(set(out)) != len(out) or not set(out) <= set("".join(full)):
        raise ValueError(f"einsum: the result {right!r} repeats a label, or has one that no operand has")
    return full, out


def _sizes(tensors: Sequence[Tensor], terms: Sequence[str]) -> dict[str, Any]:
    """Return the extent of each label: that to which its extents broadcast."""
    sizes: dict[str, Any] = {}
    for t, term in zip(tensors, terms, strict=True):
        for label, extent in zip(term, t.shape, strict=True):
            known = sizes.setdefault(label, extent)
            if isinstance(known, int) and isinstance(extent, int) and 1 not in (known, extent) and known != extent:
                raise ValueError(f"einsum: the label {label!r} stands for {known} and for {extent} elements")
            sizes[label] = known if known is extent else common_shape([[known], [extent]])[0]
    return sizes


def _expanded(t: Tensor, term: str, sizes: dict[str, Any]) -> Labelled:
    same = all(sizes[c] is e for c, e in zip(term, t.shape, strict=True))
    return (t if same else expand(t, [sizes[c] for c in term])), term


def _without_repeats(t: Tensor, term: str) -> Labelled:
    """Take the diagonal where a label stands twice in one operand."""
    for label in dict.fromkeys(term):
        while term.count(label) > 1:
            first = term.index(label)
            second = term.index(label, first + 1)
            t = diagonal(t, 0, first, second)
            term = "".join(c for i, c in enumerate(term) if i not in (first, second)) + label
    return t, term


def _summed(part: Labelled, needed: set[str]) -> Labelled:
    """Sum over the axes that nothing needs."""
    t, term = part
    axes = [i for i, c in enumerate(term) if c not in needed]
    return (reduction.sum(t, axes), "".join(c for c in term if c in needed)) if axes else part


def _product(first: Labelled, second: Labelled, needed: set[str]) -> Labelled:
    """Return the product of two operands, summed over the labels that both have and nothing needs."""
    x, a = _summed(first, needed | set(second[1]))
    y, b = _summed(second, needed | set(first[1]))
    batch = [c for c in a if c in b and c in needed]
    inner = [c for c in a if c in b and c not in needed]
    rows, columns = [c for c in a if c not in b], [c for c in b if c not in a]
    left, right = _extents(x, a), _extents(y, b)
    x = transpose(x, [a.index(c) for c in (*batch, *rows, *inner)])
    y = transpose(y, [b.index(c) for c in (*batch, *inner, *columns)])
    lead = [left[c] for c in batch]
    x = reshape_to(x, [*lead, _times(left[c] for c in rows), _times(left[c] for c in inner)])
    y = reshape_to(y, [*lead, _times(right[c] for c in inner), _times(right[c] for c in columns)])
    found = reshape_to(matmul(x, y), [*lead, *(left[c] for c in rows), *(right[c] for c in columns)])
    return found, "".join((*batch, *rows, *columns))


def _extents(t: Tensor, term: str) -> dict[str, Any]:
    return dict(zip(term, t.shape, strict=True))


def _times(extents: Any) -> Any:
    total: Any = 1
    for e in extents:
        total = total * e
    return total
