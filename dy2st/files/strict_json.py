"""JSON as RFC 8259 has it, for files: no NaN or infinity, no key twice, nothing that Python would guess at.

How many values a text can hold is counted before it is read: each takes Python up to 100 bytes, and some microseconds.
"""

from __future__ import annotations

import json
import math
from typing import Any

from dy2st.errors import FileFormatError

MAX_MARKS = 4_000_000
"""How many of `,:[{` a text has at most, those inside of strings too."""


def dumps(data: Any) -> str:
    """Return compact JSON; ValueError for what JSON cannot hold."""
    try:
        return json.dumps(data, allow_nan=False, separators=(",", ":"))
    except (TypeError, RecursionError) as error:
        raise ValueError(f"metadata must be plain JSON data ({error})") from error


def loads(text: str, what: str) -> Any:
    """Return the data of a JSON text; FileFormatError, naming `what` it is, when it is not strict JSON."""
    check_size(text, what)
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)
    except RecursionError as error:
        raise FileFormatError(f"{what} is nested too deeply") from error
    except ValueError as error:
        raise FileFormatError(f"{what} is not valid JSON: {error}") from error


def check_size(text: str | bytes, what: str, kind: type[ValueError] = FileFormatError) -> None:
    """Raise an error of a kind for a text that may hold more values than are read."""
    marks = sum(text.count(mark) for mark in (",:[{" if isinstance(text, str) else (b",", b":", b"[", b"{")))  # type: ignore[arg-type]
    if marks > MAX_MARKS:
        raise kind(f"{what} holds too much: {marks} commas, colons and brackets, the limit is {MAX_MARKS}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {name!r:.60} is there twice")
        found[name] = value
    return found


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not a number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text:.40} is too large")
    return number
