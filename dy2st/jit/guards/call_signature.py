"""The arguments of a call, taken apart: tensors and numbers that vary, and the structure that does not.

The key of a call says what a Program may depend on: dtypes and ranks, the Python values, which arguments are one and
the same object, which need gradients. Extents are not in it.
"""

from __future__ import annotations

import inspect
import operator
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.errors import ConversionError
from dy2st.jit.guards.static_values import is_its_attributes, key_of
from dy2st.kinds import TUPLE, derives, is_dict, numbered, type_of, variables_of
from dy2st.records import record
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.input_spec import InputSpec
from dy2st.runtime.tracer.values.symbolic_iterator import PulledSource, is_own

CONTAINERS: tuple[type[Any], ...] = (list, dict, OrderedDict, set, deque)
NUMPY_NUMBERS = (
    np.float16,
    np.float32,
    np.float64,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    np.uint16,
    np.uint32,
)
"""The NumPy scalars that may be left open: a Program takes the number, which Python's own types hold exactly."""


class FlatCall:
    """One call's arguments: `leaves` in order, and a `key` of everything else."""

    __slots__ = (
        "arrays",
        "containers",
        "fixed",
        "iterators",
        "key",
        "leaves",
        "names",
        "numbers",
        "numpy",
        "objects",
        "opened",
        "sharing",
        "tree",
    )

    def __init__(self) -> None:
        self.leaves: list[Any] = []
        self.containers: list[Any] = []
        self.iterators: list[PulledSource] = []
        """Iterators, which a call uses up: a Program serves the one call that it was traced for."""
        self.names: list[str] = []
        self.numbers: list[int] = []
        """The leaves that are Python numbers of which the value was left open."""
        self.numpy: dict[int, Any] = {}
        """The leaves among these that are NumPy scalars: the leaf is the number, this is the scalar itself."""
        self.objects: dict[str, Any] = {}
        """Objects that are told apart by identity, by place, and that could be taken apart."""
        self.opened: list[str] = []
        """The places of objects that were taken apart."""
        self.arrays: set[int] = set()
        """The leaves that are NumPy arrays: tensors in a Program, which writes none of them."""
        self.sharing: set[int] = set()
        """The leaves that share memory with another one."""
        self.fixed: set[tuple[int, int]] | None = set()
        """Extents that are fixed in the Program, by leaf and axis; None where none may be."""
        self.key: Any = None
        self.tree: Any = None


def flatten(values: dict[str, Any], opened: set[str]) -> FlatCall:
    """Take the bound arguments apart; numbers and attributes of objects at places in `opened` become inputs."""
    made = FlatCall()
    seen: dict[int, Any] = {}
    keys: list[Any] = []
    made.tree = {name: _flatten(x, name, made, seen, keys, opened) for name, x in values.items()}
    made.key = tuple(keys)
    return made


def _flatten(x: Any, name: str, made: FlatCall, seen: dict[int, Any], keys: list[Any], opened: set[str]) -> Any:
    kind = type_of(x)
    if isinstance(x, Tensor):
        if id(x) in seen:
            keys.append(("same", seen[id(x)]))
            return InputLeaf(seen[id(x)])
        seen[id(x)] = len(made.leaves)
        payload = x.payload
        keys.append((payload.dtype, payload.ndim, x.stop_gradient))
        if x.storage_version is not None:
            _note_memory(x, made, seen, keys)
        return _leaf(x, name, made)
    if kind is np.ndarray:
        if not x.dtype.isnative:
            x = x.astype(x.dtype.newbyteorder("="))
        dtypes.of_array(x)
        keys.append((x.dtype, x.ndim, "array"))
        made.arrays.add(len(made.leaves))
        return _leaf(Tensor(x), name, made)
    if kind in (int, float) and name in opened:
        keys.append(("number", kind))
        made.numbers.append(len(made.leaves))
        return _leaf(x, name, made)
    if kind in NUMPY_NUMBERS and name in opened:
        keys.append(("number", kind))
        made.numbers.append(len(made.leaves))
        made.numpy[len(made.leaves)] = x
        return _leaf(x.item(), name, made)
    if kind is tuple:
        keys.append((tuple, len(x)))
        items = [_flatten(v, f"{name}_{i}", made, seen, keys, opened) for i, v in enumerate(x)]
        return ContainerNode(kind, items, None, -1)
    if derives(kind, tuple) and hasattr(kind, "_fields"):
        keys.append((kind, len(x)))
        parts = zip(x._fields, x, strict=True)
        items = [_flatten(v, f"{name}_{n}", made, seen, keys, opened) for n, v in parts]
        return ContainerNode(kind, items, None, -1)
    if kind in CONTAINERS and not (kind is deque and x.maxlen is not None):
        return _container(x, name, made, seen, keys, opened)
    if is_own(x) or kind is PulledSource:
        made.iterators.append(x if kind is PulledSource else PulledSource(x))
        keys.append(("iterator", type(made.iterators[-1].real)))
        return IteratorLeaf(len(made.iterators) - 1)
    if is_its_attributes(x):
        if name in opened:
            made.opened.append(name)
            return _container(x, name, made, seen, keys, opened)
        made.objects[name] = x
    keys.append(key_of(x))
    return StaticLeaf(x)


def _note_memory(x: Tensor, made: FlatCall, seen: dict[int, Any], keys: list[Any]) -> None:
    """Note whether a tensor, which is a view or has views, shares memory with another argument."""
    first = seen.setdefault(id(x.storage_version), len(made.leaves))
    if first != len(made.leaves):
        keys.append(("memory", first))
        made.sharing |= {first, len(made.leaves)}


def shares_memory(tensors: Sequence[Tensor]) -> bool:
    """Return whether two of these are views of one tensor, or a tensor and its view."""
    versions = [id(t.storage_version) for t in tensors if t.storage_version is not None]
    return len(versions) != len(set(versions))


def meet(some: Iterable[Any], others: Iterable[Any]) -> bool:
    """Return whether one of some tensors is one of the others, or shares memory with it; numbers do not."""
    return not {_memory(t) for t in some if isinstance(t, Tensor)}.isdisjoint(map(_memory, others))


def _memory(x: Any) -> int:
    version = getattr(x, "storage_version", None)
    return id(x if version is None else version)


def _container(x: Any, name: str, made: FlatCall, seen: dict[int, Any], keys: list[Any], opened: set[str]) -> Any:
    """Take a list, a dict or an object apart; one that was met before is the same one."""
    if id(x) in seen:
        keys.append(("same", "container", seen[id(x)].index))
        return seen[id(x)]
    at = len(made.containers)
    made.containers.append(x)
    kind = type_of(x)
    in_order = kind in (list, set, deque)
    parts: dict[Any, Any] = dict(numbered(x)) if in_order else x if is_dict(x) else variables_of(x)
    labels = None if in_order else list(parts)
    keys.append((kind, len(parts) if labels is None else tuple(labels)))
    found = seen[id(x)] = ContainerNode(kind, [], labels, at)
    for k, v in parts.items():
        found.items.append(_flatten(v, f"{name}_{k}", made, seen, keys, opened))
    return found


def _leaf(x: Any, name: str, made: FlatCall) -> InputLeaf:
    made.leaves.append(x)
    made.names.append(name)
    return InputLeaf(len(made.leaves) - 1)


@record
class InputLeaf:
    """Input number `index`."""

    index: int


@record
class IteratorLeaf:
    """Iterator number `index`."""

    index: int


@record
class StaticLeaf:
    """A Python value that the Program depends on."""

    value: Any


@record
class ContainerNode:
    """A container of arguments."""

    kind: type[Any]
    items: list[Any]
    keys: list[Any] | None
    index: int = -1
    """The number of a list, dict or object among the containers of a call; -1 for a tuple."""

    @property
    def is_object(self) -> bool:
        """Whether it is an object, of which `keys` are the attributes."""
        return self.keys is not None and not issubclass(self.kind, dict)


def rebuild(
    tree: Any, leaves: Sequence[Any], containers: dict[int, Any] | None = None, iterators: Sequence[Any] = ()
) -> Any:
    """Put leaves back into the structure of the arguments; `containers` takes the lists and dicts, by number."""
    containers = {} if containers is None else containers
    if isinstance(tree, IteratorLeaf):
        return iterators[tree.index]
    if isinstance(tree, InputLeaf):
        return leaves[tree.index]
    if isinstance(tree, StaticLeaf):
        return tree.value
    if tree.index >= 0 and tree.index in containers:
        return containers[tree.index]
    if derives(tree.kind, tuple):
        items = [rebuild(i, leaves, containers, iterators) for i in tree.items]
        return tuple(items) if tree.kind is tuple else TUPLE.__new__(tree.kind, items)
    made = object.__new__(tree.kind) if tree.is_object else tree.kind()
    if tree.index >= 0:
        containers[tree.index] = made
    items = [rebuild(i, leaves, containers, iterators) for i in tree.items]
    if tree.keys is not None:
        (variables_of(made) if tree.is_object else made).update(zip(tree.keys, items, strict=True))
    elif tree.kind is set:
        made.update(items)
    else:
        made.extend(items)
    return made


def bind(signature: inspect.Signature, args: Any, keywords: Any) -> dict[str, Any]:
    """Bind a call's arguments to names, defaults included; TypeError as Python words it."""
    bound = signature.bind(*args, **keywords)
    bound.apply_defaults()
    return dict(bound.arguments)


def signature_of(function: Any) -> inspect.Signature:
    """Return the signature of a function; ConversionError for one that has none."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise ConversionError(f"{function!r} has no signature that can be read: {error}") from None


def defaults_of(function: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the defaults of a function's parameters, by position and by name."""
    named: dict[str, Any] | None = getattr(function, "__kwdefaults__", None)
    return getattr(function, "__defaults__", None) or (), dict(named or {})


class FunctionDefaults:
    """The code and defaults of a function, which its signature shows: they may be set anew."""

    def __init__(self, function: Any):
        self._function = inspect.unwrap(getattr(function, "__func__", function))
        self._seen = self._now()

    def changed(self) -> bool:
        """Return whether they are others than when that was asked last."""
        before, self._seen = self._seen, self._now()
        (code, given, named), (code_before, given_before, named_before) = self._seen, before
        same_given = len(given) == len(given_before) and all(map(operator.is_, given, given_before))
        same_named = named.keys() == named_before.keys() and all(named[k] is x for k, x in named_before.items())
        return code is not code_before or not same_given or not same_named

    def _now(self) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        f = self._function
        return getattr(f, "__code__", None), *defaults_of(f)


def call_arguments(signature: inspect.Signature, values: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return positional and keyword arguments that bind to `values`."""
    bound = inspect.BoundArguments(signature, values)
    return list(bound.args), dict(bound.kwargs)


def bound_places(
    signature: inspect.Signature, args: Sequence[Any], keywords: dict[str, Any]
) -> Iterator[tuple[str, str | None, Any]]:
    """Give name, expression and value of each argument of a call; the expression of a default is None.

    Those by position are named `a0`, `a1`, ...
    """
    position, named = 0, set(keywords)
    for name, p in signature.parameters.items():
        if p.kind is p.VAR_POSITIONAL:
            for i, x in enumerate(args[position:]):
                yield f"{name}_{i}", f"a{position + i}", x
        elif p.kind is p.VAR_KEYWORD:
            rest = {k: x for k, x in keywords.items() if k in named}
            yield name, f"{{{', '.join(f'{k!r}: keywords[{k!r}]' for k in rest)}}}", rest
        elif name in named and p.kind is not p.POSITIONAL_ONLY:
            named.discard(name)
            yield name, f"keywords[{name!r}]", keywords[name]
        elif position < len(args) and p.kind is not p.KEYWORD_ONLY:
            yield name, f"a{position}", args[position]
            position += 1
        else:
            yield name, None, p.default


def check_specs(specs: dict[str, InputSpec], made: FlatCall) -> None:
    """Hold inputs against their declarations; ValueError or TypeError names the argument."""
    for x, name in zip(made.leaves, made.names, strict=True):
        spec = specs.get(name)
        if spec is None or not isinstance(x, Tensor):
            continue
        shape = list(x.payload.shape)
        fits = len(shape) == len(spec.shape) and all(
            want in (-1, have) for want, have in zip(spec.shape, shape, strict=True)
        )
        if not fits:
            raise ValueError(f"argument '{name}' has shape {shape}, its InputSpec says {list(spec.shape)}")
        if x.dtype is not spec.dtype:
            raise TypeError(f"argument '{name}' is {x.dtype.name}, its InputSpec says {spec.dtype.name}")
