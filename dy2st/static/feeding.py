"""What is fed and fetched, checked: one error that names the variable and the line on which it was declared."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.shapes import Dim
from dy2st.static.recorder import ProgramRecorder


def check_names(recorder: ProgramRecorder, feed: Any, needed: Iterable[str]) -> dict[str, Any]:
    """Return what is fed as a dict; ValueError for a name that the Program does not have, or one that is missing."""
    if feed is None:
        feed = {}
    if isinstance(feed, (list, tuple)) and len(feed) == 1:
        feed = feed[0]
    if not isinstance(feed, Mapping):
        raise TypeError(f"feed is a dict of names and arrays, not {type(feed).__name__}")
    for name in feed:
        if name not in recorder.feeds:
            raise ValueError(f"feed: the Program has no data {name!r}{_near(name, recorder.feeds)}")
    missing = [name for name in needed if name not in feed]
    if missing:
        which = ", ".join(f"{name!r} (declared at {_place(recorder, name)})" for name in sorted(missing))
        raise ValueError(f"feed: no value is given for the data {which}")
    return dict(feed)


def feed_array(recorder: ProgramRecorder, name: str, given: Any) -> Any:
    """Return what is fed for `name` as an array of its dtype; ValueError where dtype or shape does not fit.

    Python numbers and lists take the declared dtype; arrays and tensors must have it.
    """
    kind = recorder.feeds[name].payload.type
    assert isinstance(kind, TensorType)
    array = _array(given, name, kind)
    found = dtypes.of_array(array)
    if found is not kind.dtype:
        raise ValueError(
            f"feed: the data {name!r} (declared at {_place(recorder, name)}) is {kind.dtype.name}, but the value has "
            f"dtype {found.name}; convert it with astype('{kind.dtype.name}')"
        )
    fits = array.ndim == len(kind.shape) and all(
        isinstance(want, Dim) or want == have for want, have in zip(kind.shape, array.shape, strict=True)
    )
    if not fits:
        declared = [-1 if isinstance(e, Dim) else e for e in kind.shape]
        raise ValueError(
            f"feed: the data {name!r} (declared at {_place(recorder, name)}) has shape {declared}, but the value has "
            f"shape {list(array.shape)}"
        )
    return array


def _array(given: Any, name: str, kind: TensorType) -> Any:
    if isinstance(given, Tensor):
        return given.array(f"the value fed for {name!r}")
    if hasattr(given, "dtype"):
        return given if hasattr(given, "__array_function__") or hasattr(given, "get") else np.asarray(given)
    try:
        if hasattr(given, "__array__"):
            return np.asarray(given)
        array = np.asarray(given)
        if array.dtype.kind not in "biufc":
            raise TypeError
        return array.astype(kind.dtype.numpy)
    except (TypeError, ValueError):
        raise TypeError(
            f"feed: the value for {name!r} must be an array or numbers, not {type(given).__name__}"
        ) from None


def fetched_values(recorder: ProgramRecorder, fetch_list: Any) -> list[Value]:
    """Return the values of variables given as themselves or by name, nested lists flattened."""
    if fetch_list is None:
        return []
    given = fetch_list if isinstance(fetch_list, (list, tuple)) else [fetch_list]
    found: list[Value] = []
    for one in given:
        if isinstance(one, (list, tuple)):
            found += fetched_values(recorder, one)
        else:
            found.append(_fetched(recorder, one))
    return found


def _fetched(recorder: ProgramRecorder, one: Any) -> Value:
    if isinstance(one, str):
        if one not in recorder.named:
            raise ValueError(f"fetch_list: the Program has no variable named {one!r}{_near(one, recorder.named)}")
        one = recorder.named[one]
    if isinstance(one, Scalar):
        value = recorder.moved.get(one.value, one.value)
    elif isinstance(one, Tensor):
        if not isinstance(one.payload, Value) and recorder.state_of(one) is None:
            raise ValueError(f"fetch_list: {one.name} is an eager tensor that the Program does not use")
        value = recorder.value_in(one)
    else:
        raise TypeError(f"fetch_list has variables and names, not {type(one).__name__}")
    if value.block is not recorder.root.block:
        name = one.name if isinstance(one, Tensor) else "a number"
        raise ValueError(
            f"fetch_list: {name} belongs to another Program, or to a branch or loop body; return it from there to "
            "fetch it"
        )
    return value


def _near(name: Any, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(str(name), list(known), n=2)
    if near:
        return f"; did you mean {' or '.join(map(repr, near))}?"
    names = ", ".join(map(repr, list(known)[:8]))
    return f"; it has {names}" if names else "; it has none"


def _place(recorder: ProgramRecorder, name: str) -> str:
    return str(recorder.feed_places.get(name, "an unknown line"))
