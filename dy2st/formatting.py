"""How tensors and numbers print: as Paddle and Python print them, in eager mode and inside a running Program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

OPTIONS: dict[str, Any] = {"precision": 8, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}

Part = str | tuple[Any, ...]
"""A piece of text, or what stands for an operand: (head, conversion, format specification). `head` is "" for a number;
for a tensor it is `Tensor` and what precedes the elements apart from the shape, e.g. "Tensor:True". Parts that are one
text together are ("parts", parts, conversion, format specification); a variant has ("one of", a part for each tag)."""


def format_array(array: Any, stop_gradient: bool, head: str = "Tensor") -> str:
    """Return the text of a tensor with these elements."""
    place = "Place(cpu)" if isinstance(array, np.ndarray) else f"Place(gpu:{array.device.id})"
    host = array if isinstance(array, np.ndarray) else array.get()
    return (
        f"{head}(shape={list(array.shape)}, dtype={array.dtype.name}, place={place}, stop_gradient={stop_gradient},\n"
        f"       {format_elements(host)})"
    )


def format_elements(array: np.ndarray) -> str:
    """Return the elements as Paddle aligns them: seven spaces before every further row."""
    if array.dtype.kind == "V":  # bfloat16, which NumPy cannot align
        array = array.astype(np.float32)
    text = np.array2string(
        array,
        separator=", ",
        precision=OPTIONS["precision"],
        threshold=OPTIONS["threshold"],
        edgeitems=OPTIONS["edgeitems"],
        max_line_width=OPTIONS["linewidth"],
        suppress_small=OPTIONS["sci_mode"] is False,
        formatter={"float_kind": lambda x: f"{x:.{OPTIONS['precision']}e}"} if OPTIONS["sci_mode"] else None,
        floatmode="maxprec_equal" if array.size > 1 and not _whole(array) else "maxprec",
    )
    return text.replace("\n", "\n       ")


def _whole(array: np.ndarray) -> bool:
    return array.dtype.kind != "f" or bool(np.all(np.isfinite(array)) and np.all(array == np.trunc(array)))


def render(template: tuple[Part, ...], operands: tuple[Any, ...]) -> list[str]:
    """Return the texts of a template's parts, operands put in their places."""
    rest = iter(operands)
    return [_part(part, rest) for part in template]


def places(template: tuple[Part, ...]) -> int:
    """Return how many operands are put into a template."""
    return sum(0 if isinstance(p, str) else places(p[1]) if p[0] == "parts" else 1 for p in template)  # type: ignore[arg-type]


def _part(part: Part, rest: Iterator[Any]) -> str:
    if isinstance(part, str):
        return part
    if part[0] == "parts":
        _, inside, conversion, spec = part
        text = "".join(_part(p, rest) for p in inside)
        return format(repr(text) if conversion == "r" else text, spec)
    if part[0] == "one of":
        tag, payload = next(rest)
        return _part(part[1][tag], iter((payload,)))
    return _text(next(rest), *part)  # type: ignore[arg-type]


def _text(value: Any, head: str, conversion: str, spec: str) -> str:
    if head:
        name, _, flag = head.partition(":")
        if spec and value.size == 1:
            return format(value.item(), spec)
        return format_array(value, flag == "True", name)
    if conversion == "r":
        return format(repr(value), spec)
    return format(str(value), spec) if conversion == "s" else format(value, spec)
