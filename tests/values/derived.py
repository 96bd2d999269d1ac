"""Rows that follow from rows: methods, in-place forms, and other names of the same function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tests.values.row import Row
from tests.values.running import resolve

CHANGING_SHAPE = ("reshape", "squeeze", "unsqueeze", "flatten", "transpose", "t")


def derived_rows(rows: Iterable[Row], names: Iterable[str], module: Any) -> Iterator[Row]:
    """Yield the rows that follow from `rows` for `names` (of Paddle's table) that have none of their own."""
    listed = list(rows)
    own = {row.name for row in listed}
    others = [name for name in names if name not in own]
    by_object = _by_object(others, module)
    for row in listed:
        if row.form not in ("function", "layer"):
            continue
        aliases = [row.but(name=n, variants=row.variants[:1]) for n in _names_of(row, by_object, module)]
        yield from aliases
        if row.form == "function" and row.args and isinstance(row.args[0], (np.ndarray, np.generic)):
            for named in (row, *aliases):
                yield from _of_tensor(named, named.name.split(".")[-1], own, others)


def _of_tensor(row: Row, last: str, own: set[str], others: list[str]) -> Iterator[Row]:
    if f"Tensor.{last}" in others and "nn." not in row.name:
        yield row.but(name=f"Tensor.{last}", form="method", variants=row.variants[:1])
    stem = row.name.removesuffix(last)
    for name in dict.fromkeys((f"{stem}{last}_", f"Tensor.{last}_")):
        if name in others and _fits(row, last):
            want = np.asarray(row.wanted())
            kept = want if want.dtype.kind != row.args[0].dtype.kind else want.astype(row.args[0].dtype)
            yield row.but(name=name, form="in place", want=kept, variants=("float64", "strided"))


def _fits(row: Row, last: str) -> bool:
    """Say whether a result can be written into the first argument."""
    want = row.wanted()
    if isinstance(want, tuple) or last == "where":  # where_ writes into its second argument
        return False
    return last in CHANGING_SHAPE or np.shape(want) == np.shape(row.args[0])


def _by_object(names: list[str], module: Any) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for name in names:
        if name.startswith("Tensor."):
            continue
        try:
            found.setdefault(id(resolve(name, module)), []).append(name)
        except AttributeError:
            continue
    return found


def _names_of(row: Row, by_object: dict[int, list[str]], module: Any) -> list[str]:
    try:
        return by_object.get(id(resolve(row.name, module)), [])
    except AttributeError:
        return []
