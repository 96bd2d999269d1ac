"""Runs a form of `unconverted_forms.txt` eagerly and under `to_static`, and compares results and what stands outside.

A form is a statement whose work is done by code that is not converted (a library, a C function, a bound method, an
operator). It is put at the top of a function, into a branch, into a loop, and everything that stands outside under a
name of small letters is compared as well.
"""

from __future__ import annotations

import importlib.util
import io
import sys
import textwrap
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

import dy2st as paddle
from dy2st.jit.dispatch.fallback_warning import FallbackWarning
from dy2st.records import record

HEAD = "import " + ", ".join((
    "array", "bisect", "collections", "contextlib", "contextvars", "copy", "dataclasses", "functools", "heapq",
    "inspect", "io", "itertools", "json", "math", "operator", "pickle", "pprint", "queue", "re", "statistics", "string",
    "struct", "threading", "types", "weakref",
)) + "\nimport numpy as np\nimport dy2st as paddle\n\n"  # fmt: skip
IMPORTED = frozenset((*HEAD.replace(",", " ").split(), "f"))
CALLS = ((1.0, 2.0), (-1.0, -2.0), (2.0, 1.0), (-3.0, 1.0), (0.5, 0.25, 1.0))
"""What the five calls are made with: the test of a branch is true, false, true, false, true."""


@record(frozen=True)
class Form:
    """One statement and what stands around it, as source text."""

    outside: str
    before: str
    body: str
    result: str


def _forms(text: str) -> dict[str, Form]:
    found: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        if line.startswith("["):
            found[line[1:-1]] = parts = dict.fromkeys("|>-=", "")
        elif line and not line.startswith("#"):
            parts[line[0]] += line[2:] + "\n"
    return {name: Form(*(parts[mark].rstrip("\n") for mark in "|>-=")) for name, parts in found.items()}


FORMS = _forms(Path(__file__).with_suffix(".txt").with_stem("unconverted_forms").read_text(encoding="utf-8"))


def _in(head: str, body: str, tail: str = "") -> str:
    return head + "\n" + textwrap.indent(body, "    ") + tail


POSITIONS: dict[str, Callable[[str], str]] = {
    "top": lambda body: body,
    "then": lambda body: _in("if x.sum() > 0:", body),
    "else": lambda body: _in("if x.sum() > 0:\n    pass\nelse:", body),
    "loop": lambda body: _in("turn = 0\nwhile turn < x.abs().sum():", body, "\n    turn = turn + 1"),
    "after": lambda body: _in("if x.sum() > 0:", "z = 1") + "\n" + body,
}


def source(form: Form, position: str) -> str:
    """Return the module of a form."""
    body = POSITIONS[position](form.body)
    inside = "\n".join(part for part in (form.before, body, f"return {form.result}") if part)
    return HEAD + form.outside + "\n\ndef f(x, k, items):\n" + textwrap.indent(inside, "    ") + "\n"


def imported(text: str, path: Path) -> dict[str, Any]:
    """Write a module and return what it defines."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return vars(module)


def seen(x: Any, around: tuple[int, ...] = ()) -> Any:
    """Return what can be compared of a value; a tensor that has no elements is a string that says so."""
    if isinstance(x, paddle.Tensor):
        return ("tensor", np.round(x.numpy(), 4).tolist()) if isinstance(x.payload, np.ndarray) else "a dead tensor"
    if isinstance(x, (np.ndarray, np.generic)):
        return "array", seen(x.tolist(), around)
    if id(x) in around:
        return "again"
    around = (*around, id(x))
    if isinstance(x, dict) or hasattr(x, "items"):
        return type(x).__name__, [(seen(k, around), seen(v, around)) for k, v in x.items()]
    if isinstance(x, (list, tuple, set, frozenset)) or type(x).__name__ in ("deque", "UserList", "array", "bytearray"):
        return type(x).__name__, [seen(i, around) for i in x]
    if isinstance(x, float):
        return round(x, 4)
    if x is None or isinstance(x, (int, str, bytes, complex)):
        return x
    if type(x).__module__ in ("queue", "_queue"):
        return x.qsize()
    if type(x).__name__ == "ContextVar":
        return seen(x.get(None))
    if type(x).__name__ == "ExitStack":
        return len(x._exit_callbacks)
    if type(x).__name__ == "_lru_cache_wrapper":
        return "cache"
    if hasattr(x, "_buffers"):
        return [seen(v, around) for v in (x._parameters, x._buffers, x._sub_layers)]
    if type(x).__module__.startswith("unconverted") or isinstance(x, type):
        hidden = ("BoundFunctions", "getset_descriptor")
        held = {
            k: v for k, v in vars(x).items() if not (k.startswith("__") or callable(v) or type(v).__name__ in hidden)
        }
        return (x if isinstance(x, type) else type(x)).__name__, [(k, seen(v, around)) for k, v in held.items()]
    return f"a {type(x).__name__}"


def outside(module: dict[str, Any]) -> Any:
    """Return what can be compared of everything that stands outside of a function."""
    names = [n for n in module if not n.startswith("_") and n not in IMPORTED and n != "f"]
    return [(n, seen(module[n])) for n in sorted(names)]


def run(module: dict[str, Any], f: Callable[..., Any]) -> list[Any]:
    """Call a function; return what each call gave, printed, and left outside."""
    found: list[Any] = []
    taken = module["f"].__code__.co_argcount
    for k, values in enumerate(CALLS):
        items: list[Any] = [1, 2]
        x = paddle.to_tensor(list(values))
        printed = io.StringIO()
        try:
            with redirect_stdout(printed):
                result = seen(f(*(x, k, items)[:taken]))
        except Exception as error:
            result = f"raised {type(error).__name__}"
        found.append((result, printed.getvalue(), seen(items), outside(module)))
    return found


def compared(name: str, position: str, folder: Path) -> tuple[str, list[str], list[Any], list[Any]]:
    """Return how a form went: "same", "fell back", or "differs", the warnings, and both lists of what was seen."""
    return compared_sources(source(FORMS[name], position), f"{name}_{position}", folder)


def compared_sources(text: str, name: str, folder: Path) -> tuple[str, list[str], list[Any], list[Any]]:
    """Return how the function `f` of a module went, as `compared` does."""
    stem = f"unconverted_{name}"
    eager = imported(text, folder / f"{stem}_eager.py")
    static = imported(text, folder / f"{stem}_static.py")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = run(eager, eager["f"])
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        got = run(static, paddle.jit.to_static(static["f"]))
    texts = [str(w.message) for w in warned if issubclass(w.category, FallbackWarning)]
    same = repr(wanted) == repr(got).replace("_static", "_eager")
    return ("differs" if not same else "fell back" if texts else "same"), texts, wanted, got
