"""Layers of the library made of several ops, whose eager calls run as one Program (runtime/eager/composite.py).

Parameters are arguments of the Program, so that all layers of one class with the same settings share it. It is traced
of a copy of the layer without parameters.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from numpy import ndarray

from dy2st.naming import is_plain_module
from dy2st.nn.layer import Layer
from dy2st.records import record
from dy2st.runtime.eager.composite import Kinds, describe, function_of_tensors, key_here
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.eager.tracked_settings import changes

Forward = TypeVar("Forward", bound=Callable[..., Any])
_MOST_SETTINGS = 1024
_REGISTRIES = ("_parameters", "_buffers", "_sub_layers", "_forward_pre_hooks", "_forward_post_hooks")
_NO_SETTINGS = frozenset((
    *_REGISTRIES, "_non_persistable_buffer_names_set", "_training", "_full_name", "_config", "name",
))  # fmt: skip
"""Attributes that are looked at in each call, or that no `forward` reads."""


@record(frozen=True)
class _Part:
    """One layer of a tree, as it was when the tree was looked at."""

    state: dict[str, Any]
    below: tuple[Layer, ...]
    kinds: tuple[type, ...]
    names: tuple[str, ...]
    """Of its parameters."""

    def is_as_before(self) -> bool:
        """Return whether it has the same sublayers and parameters, and nothing of the user's runs in it."""
        state = self.state
        return not (
            state["_forward_pre_hooks"]
            or state["_forward_post_hooks"]
            or state["_buffers"]
            or "forward" in state
            or (state["_sub_layers"] if not self.below else tuple(state["_sub_layers"].values()) != self.below)
            or (self.below and tuple(map(type, self.below)) != self.kinds)
            or tuple(state["_parameters"]) != self.names
        )


@record(frozen=True)
class _Tree:
    """A layer with all below it, without the layer itself."""

    seen: int
    """How often any setting had been set anew."""
    kind: type
    settings: Any
    """What tells it from others; None where it does not run as a Program."""
    parts: tuple[_Part, ...] = ()
    places: tuple[int | None, ...] = ()
    """For each parameter the number of the tensor that it is; None where there is none."""

    def parameters(self, layer: Layer) -> list[Any] | None:
        """Return the tensors of its parameters, each once; None where the tree has changed."""
        if self.seen != changes.count or type(layer) is not self.kind:
            return None
        found: list[Any] = []
        places = iter(self.places)
        for part in self.parts:
            if not part.is_as_before():
                return None
            for t in part.state["_parameters"].values():
                place = next(places)
                if place == len(found):
                    found.append(t)
                elif t is not (None if place is None else found[place]):
                    return None
        return found


_trees: WeakKeyDictionary[Layer, _Tree] = WeakKeyDictionary()
_settings: dict[Any, object] = {}
"""One object for each description of a tree: it is compared in no time."""


def composite_layer(forward: Forward) -> Forward:
    """Let eager calls of a layer run as one Program: of the library's own layers alone, without buffers and hooks."""
    kinds = Kinds(forward)

    @functools.wraps(forward)
    def run(self: Layer, *args: Any, **keywords: Any) -> Any:
        key = key_here()
        if key is None:
            return forward(self, *args, **keywords)
        tree = _trees.get(self)
        found = None if tree is None else tree.parameters(self)
        if found is None:
            tree = _trees[self] = _looked_at(self)
            found = tree.parameters(self)
        if found is None or tree.settings is None or not all(map(_is_array, found)):  # type: ignore[union-attr]
            return forward(self, *args, **keywords)
        key.append(tree.settings)  # type: ignore[union-attr]
        key += [part.state["_training"] for part in tree.parts]  # type: ignore[union-attr]
        if not describe(args, keywords, key, found):
            return forward(self, *args, **keywords)

        def of_tensors(layer: Layer, *more: Any, **named: Any) -> Callable[..., Any]:
            return _of_tensors(forward, layer, tree, more, named)  # type: ignore[arg-type]

        return kinds.run(tuple(key), found, of_tensors, (self, *args), keywords)

    run.__dy2st_kinds__ = kinds  # type: ignore[attr-defined]
    return cast("Forward", run)


def _of_tensors(
    forward: Callable[..., Any], layer: Layer, tree: _Tree, args: Any, keywords: dict[str, Any]
) -> Callable[..., Any]:
    """Return the call of a layer as a function of its parameters and the tensors among the arguments."""
    hollow, places = _hollow(layer), tree.places

    def call(parameters: list[Tensor], *more: Any, **named: Any) -> Any:
        filled = _hollow(hollow)
        numbers = iter(places)
        for part in _parts_of(filled):
            for name in part.names:
                at = next(numbers)
                part.state["_parameters"][name] = None if at is None else parameters[at]
        return forward(filled, *more, **named)

    call.__name__ = type(layer).__name__
    kinds = {kind: None for one in (type(layer), *(kind for part in tree.parts for kind in part.kinds))
             for kind in one.__mro__ if kind not in Layer.__mro__}  # fmt: skip
    methods = [getattr(f, "fget", f) for kind in kinds for f in vars(kind).values()]
    return function_of_tensors(call, (tree.parameters(layer), *args), keywords, methods)


def _hollow(layer: Layer) -> Layer:
    """Return a copy of a layer and all below it, without parameters."""
    made = object.__new__(type(layer))
    vars(made).update(vars(layer))
    vars(made).update({name: {} for name in _REGISTRIES})
    made._parameters.update(dict.fromkeys(layer._parameters))
    made._sub_layers.update({name: _hollow(one) for name, one in layer._sub_layers.items()})
    return made


def _looked_at(layer: Layer) -> _Tree:
    parts = tuple(_parts_of(layer))
    key: list[Any] = []
    kinds = [type(layer), *(kind for part in parts for kind in part.kinds)]
    if not all(is_plain_module(kind.__module__) for kind in kinds):
        return _Tree(changes.count, type(layer), None)
    key += kinds
    if not all(part.is_as_before() and _describe_settings(part, key) for part in parts):
        return _Tree(changes.count, type(layer), None)
    numbers: dict[int, int] = {}
    every = [t for part in parts for t in part.state["_parameters"].values()]
    places = tuple(None if t is None else numbers.setdefault(id(t), len(numbers)) for t in every)
    if len(_settings) >= _MOST_SETTINGS:
        _settings.clear()
    return _Tree(changes.count, type(layer), _settings.setdefault((*key, places), object()), parts, places)


def _describe_settings(part: _Part, key: list[Any]) -> bool:
    """Add the settings of a layer; return whether that tells all that its `forward` depends on."""
    key += len(part.below), *part.names
    tensors: list[Tensor] = []
    settings = {name: value for name, value in part.state.items() if name not in _NO_SETTINGS}
    return describe((), settings, key, tensors) and not tensors


def _parts_of(layer: Layer) -> Iterator[_Part]:
    """Yield a layer and all below it, those at two places twice."""
    below = tuple(layer._sub_layers.values())
    yield _Part(vars(layer), below, tuple(map(type, below)), tuple(layer._parameters))
    for one in below:
        yield from _parts_of(one)


def _is_array(t: Tensor) -> bool:
    return t.payload.__class__ is ndarray
