"""Paddle's public names, as data/paddle_surface.csv lists them: which are here, and which arguments they take."""

from __future__ import annotations

import ast
import csv
import inspect
import re
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import dy2st

SURFACE = Path(__file__).parent / "data" / "paddle_surface.csv"


@dataclass(frozen=True)
class Name:
    """One row: a public name of Paddle's."""

    tier: int
    path: str
    kind: str
    signature: str

    def __str__(self) -> str:
        return self.path


@cache
def surface() -> tuple[Name, ...]:
    """Read the table."""
    with SURFACE.open(encoding="utf-8", newline="") as file:
        return tuple(Name(int(r["tier"]), r["name"], r["kind"], r["signature"]) for r in csv.DictReader(file))


def tier(number: int) -> list[Name]:
    """Return the names of one tier."""
    return [name for name in surface() if name.tier == number]


def resolve(path: str) -> Any:
    """Return what a dotted name stands for where `paddle` is dy2st; AttributeError where nothing does."""
    found: Any = dy2st
    for part in path.split(".")[1:]:
        found = getattr(found, part)
    return found


def is_here(path: str) -> bool:
    """Say whether a dotted name stands for something."""
    try:
        resolve(path)
    except AttributeError:
        return False
    return True


def listed_arguments(signature: str) -> tuple[list[str], list[str]] | None:
    """Return the positional and the keyword-only names of a signature in the table; None where it has none.

    What stands for a default is of no interest, and not always Python.
    """
    if not signature.strip():
        return None
    text = re.sub(r"<[^>]*>", "None", signature)
    arguments = ast.parse(f"def f{re.sub('= *(?=[,)])', '= None', text)}: pass").body[0].args  # type: ignore[attr-defined]
    return [a.arg for a in (*arguments.posonlyargs, *arguments.args)], [a.arg for a in arguments.kwonlyargs]


def lacking_arguments(name: Name) -> list[str]:
    """Return the arguments in the table that ours does not take, or not in that order ("order: ...")."""
    found, listed = resolve(name.path), listed_arguments(name.signature)
    if listed is None or not callable(found):
        return []
    positional, keywords = listed
    parameters = list(inspect.signature(found).parameters.values())
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return []
    ours = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if name.path.split(".")[-2][:1].isupper():  # a method: its object comes first, whatever it is called
        positional, ours = positional[1:], ours[1:]
    elif positional[:1] == ["self"]:
        positional = positional[1:]
    taken = {p.name for p in parameters}
    lacking = [a for a in (*positional, *keywords) if a not in taken]
    shared = [a for a in positional if a in ours]
    return lacking or ([f"order: {', '.join(ours)}"] if shared != ours[: len(shared)] else [])


def unread_arguments(path: str) -> list[str]:
    """Return the arguments of a function, or of what makes a class, that its body never reads."""
    found = resolve(path)
    function = found.__dict__.get("__init__") if inspect.isclass(found) else found
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))  # type: ignore[arg-type]
    except (TypeError, OSError, SyntaxError):
        return []
    if not isinstance(definition := tree.body[0], ast.FunctionDef):
        return []
    given = definition.args
    arguments = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    read = {n.id for part in definition.body for n in ast.walk(part) if isinstance(n, ast.Name)}
    return [a for a in arguments if a not in read | {"self", "cls", "name"} and not a.startswith("_")]
