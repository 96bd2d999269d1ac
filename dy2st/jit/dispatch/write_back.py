"""What a run of a Program leaves behind, written to the real objects: elements, gradients, attributes, containers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.jit.guards.guards import ArgumentSlot, StateSlot
from dy2st.jit.tracing.output_structure import SharedObjects, restore
from dy2st.kinds import LIST, is_deque, type_of
from dy2st.runtime.autograd_engine.backward import accumulate_leaf
from dy2st.runtime.eager import inplace
from dy2st.runtime.eager.rng import default_generator
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.access.absent_attributes import users_function
from dy2st.runtime.tracer.values.abstract import Const, Number, TensorLike
from dy2st.runtime.tracer.values.container_classes import fill, library_kind
from dy2st.runtime.tracer.values.object_attributes import attributes, drop_attribute
from dy2st.runtime.tracer.values.sentinels import Key
from dy2st.runtime.tracer.values.unbound import UnboundLocal


def are_bare(writes: Sequence[Any]) -> bool:
    """Return whether `write_arrays` can do the writes: of constants, numbers, tensors without a gradient of their
    own.
    """
    return all(
        isinstance(aval, (Const, Number)) or (isinstance(aval, TensorLike) and aval.stop_gradient)
        for _, _, aval in writes
    )


def write_arrays(
    writes: Sequence[Any], values: Sequence[Any], leaves: Sequence[Any], containers: Sequence[Any]
) -> None:
    """Do what `write_back` does with arrays that nobody has made tensors of: a step of training has many of them."""
    targets = [  # before an attribute is bound anew
        owner if type(owner) is Tensor else target(owner, leaves, containers) for _, owner, _ in writes
    ]
    rest = iter(values)
    for (key, _, aval), written in zip(writes, targets, strict=True):
        if type(aval) is Const:
            commit(key, written, aval.object)
            continue
        kind, value = key[0], next(rest)
        if kind == "data" and written.storage_version is None:
            written.payload = value
        elif kind == "data":
            write_array(written, value)
        elif kind == "grad_sum" and written.grad is not None:
            accumulate_leaf(written, value, set())
        else:
            commit(key, written, value if isinstance(value, (bool, int, float)) else Tensor(value))


def write_back(
    writes: Sequence[Any],
    values: Sequence[Any],
    leaves: Sequence[Any],
    containers: Sequence[Any],
    shared: SharedObjects,
) -> None:
    """Write what a run left to the real objects."""
    rest = iter(values)
    targets = [target(owner, leaves, containers) for _, owner, _ in writes]  # before an attribute is bound anew
    for (key, _, aval), written in zip(writes, targets, strict=True):
        commit(key, written, restore(rest, aval, shared))


def target(owner: Any, leaves: Sequence[Any], containers: Sequence[Any]) -> Any:
    """Return the object that a write goes to in this call."""
    if isinstance(owner, ArgumentSlot):
        return owner.of(leaves, containers)
    return owner.fetch() if isinstance(owner, StateSlot) else owner


def commit(key: Key, owner: Any, value: Any) -> None:
    """Write what a run left under a key of the side-effect log into the real object."""
    kind = key[0]
    if isinstance(value, UnboundLocal):
        if kind == "attr" and key[2] in attributes(owner):
            if isinstance(owner, type):
                delattr(owner, key[2])
            else:
                drop_attribute(owner, key[2])
        return
    if kind == "data":
        _write_elements(owner, value)
    elif kind == "grad":
        owner._grad = value
    elif kind == "grad_sum":
        if value is not None:
            if owner._grad is None:
                owner._grad = value
            else:
                accumulate_leaf(owner, value.payload, set())
    elif kind == "attr":
        _bind(owner, key[2], value)
    elif kind == "rng":
        default_generator().go_on_at(value)
    elif kind == "cell":
        owner.cell_contents = value
    elif kind == "global":
        owner[key[2]] = value
    elif kind == "seed":
        default_generator().seed = value
    elif kind == "tail":
        LIST.extend(owner, value)
    elif not is_deque(owner) or not _holds(owner, value):  # which an iterator of a deque takes for a change
        fill(owner, value)


def _holds(owner: Any, items: Any) -> bool:
    """Return whether a container holds these items already."""
    return len(owner) == len(items) and all(x is y for x, y in zip(owner, items, strict=True))


def _bind(owner: Any, name: str, value: Any) -> None:
    """Bind an attribute; a `__setattr__` of the user's has run in the trace, and its effects are writes as well."""
    if isinstance(owner, type) or users_function(type_of(owner), "__setattr__") is None:
        setattr(owner, name, value)
    else:
        base: Any = library_kind(type_of(owner))
        base.__setattr__(owner, name, value)


def _write_elements(tensor: Tensor, new: Tensor) -> None:
    """Give a tensor new elements and their history; views of it see them, and what it is a view of."""
    leaf = tensor.tape_node is None and not tensor.stop_gradient
    if tensor.storage_version is not None and not new.stop_gradient and not leaf:
        inplace.write(tensor, new)
        return
    write_array(tensor, new.payload)
    if not new.stop_gradient and not leaf:
        tensor.tape_node, tensor.tape_index, tensor.stop_gradient = new.tape_node, new.tape_index, False


def write_array(tensor: Tensor, array: Any) -> None:
    """Give a tensor the elements of an array; in place where views of it have to see them."""
    if tensor.storage_version is None:
        tensor.payload = array
    else:
        if array is not tensor.payload:
            tensor.payload[...] = array
        tensor.storage_version.overwrite()
