"""Hooks on what the tape keeps for the way back: packed when an operation is recorded, unpacked when it is needed.

While hooks are current, a node keeps nothing of its operands and results but what its VJP uses, and that packed.
What only another mode of derivation would use is dropped, and asking for it is an error.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

from dy2st.errors import AutodiffError, NeedsPythonValue
from dy2st.ir.context import current, replaced, switch
from dy2st.ir.location import error_here
from dy2st.ops.core.rounded import TANGENT
from dy2st.runtime.eager.tape.node import Node, ProgramCall
from dy2st.runtime.eager.tape.op_derivative import Ghost, op_pullback
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.eager.version_counter import VersionCounter


class Packed(Ghost):
    """What a pack hook made of an array; `unpacked` gives it back."""

    __slots__ = ("_of", "_packed", "_unpack")
    base = None

    def __init__(self, array: Any, packed: Any, unpack: Callable[[Any], Any]):
        super().__init__(array.shape, array.dtype)
        self._of, self._packed, self._unpack = weakref.ref(array), packed, unpack

    @property
    def of(self) -> Any:
        """The array that was packed, None where it is gone."""
        return self._of()

    def unpacked(self) -> Any:
        """Return the array that the unpack hook gives.

        Raises TypeError where that is no Tensor, ValueError where its shape or dtype is another.
        """
        with replaced(grad=False, saved=None):
            found = self._unpack(self._packed)
        if not isinstance(found, Tensor):
            raise TypeError(f"an unpack hook must return a Tensor, not {type(found).__name__}")
        array = found.array()
        if array.shape != self.shape or array.dtype != self.dtype:
            raise ValueError(
                f"an unpack hook returned a tensor of shape {list(array.shape)} and dtype {array.dtype}, but what was "
                f"packed has shape {list(self.shape)} and dtype {self.dtype}"
            )
        return array


class Dropped(Ghost):
    """An array that no VJP needs."""

    __slots__ = ()
    base = None


def is_packed(value: Any, of: Any) -> bool:
    """Return whether `value` is the array `of`, packed."""
    return isinstance(value, Packed) and value.of is of


def restored(node: Node, value: Any) -> Any:
    """Return an operand or result of a node as an array; raise AutodiffError for one that was dropped."""
    if isinstance(value, Packed):
        return value.unpacked()
    if isinstance(value, Dropped):
        raise AutodiffError(
            f"'{node.name}' was recorded under saved_tensors_hooks or recompute, which keep what the way back needs; "
            "this derivative needs more"
        )
    return value


class saved_tensors_hooks:  # noqa: N801 (Paddle's name)
    """Pack what operations keep for their gradients, and unpack it when gradients are computed, inside of a `with`.

    Parameters
    ----------
    pack_hook
        Takes a tensor that would be kept, returns anything.
    unpack_hook
        Takes what `pack_hook` returned, returns a tensor of the same shape and dtype.

    They are called without recording. A converted function that uses this runs eagerly; a call of a Program that was
    converted elsewhere packs what its forward part hands to its backward part.

    >>> import dy2st as paddle
    >>> sizes = []
    >>> def pack(t):
    ...     sizes.append(t.shape)
    ...     return t.numpy()
    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> with paddle.autograd.saved_tensors_hooks(pack, paddle.to_tensor):
    ...     y = paddle.sin(x).sum()
    >>> y.backward()
    >>> sizes
    [[2]]
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]):
        for hook, what in ((pack_hook, "pack_hook"), (unpack_hook, "unpack_hook")):
            if not callable(hook):
                raise TypeError(f"saved_tensors_hooks: {what} must be callable, not {type(hook).__name__}")
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook
        self._before: list[Any] = []

    def __enter__(self) -> None:
        if current().trace is not None:
            raise error_here(
                NeedsPythonValue, "saved_tensors_hooks was used; its hooks are Python, which no Program can run"
            )
        self._before.append(current().saved)
        switch(saved=self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        switch(saved=self._before.pop())

    def packed(self, array: Any) -> Packed:
        """Return an array packed."""
        with replaced(grad=False, saved=None):
            return Packed(array, self.pack_hook(Tensor(array)), self.unpack_hook)

    def keep(self, node: Node) -> None:
        """Pack what a node that was just recorded keeps."""
        if isinstance(node.source, ProgramCall):
            self._keep_residuals(node, node.source)
        else:
            self._keep_used(node)

    def _keep_used(self, node: Node) -> None:
        op, attributes, arrays = node.source
        results = list(node.results)
        wanted = tuple(i for i, edge in enumerate(node.edges) if edge is not None)
        seeded = tuple(i for i, v in enumerate(results) if v.dtype.kind in TANGENT)
        uses = op_pullback(op, attributes, arrays, wanted, seeded).uses
        arrays, operands = list(arrays), list(node.operands)
        for kind, i, _ in uses:
            values = {"operand": arrays, "result": results}.get(kind)
            if values is not None and hasattr(values[i], "nbytes"):
                values[i] = self.packed(values[i])
        if len(results) == 1:  # with several, which cotangents are there decides what else is used
            arrays, results = ([Dropped(v.shape, v.dtype) if hasattr(v, "nbytes") else v for v in values]
                               for values in (arrays, results))  # fmt: skip
        node.versions = _watched(node, operands)
        node.source, node.results, node.operands = (op, attributes, arrays), results, ()

    def _keep_residuals(self, node: Node, call: ProgramCall) -> None:
        """Pack residuals, but not those that are inputs or results, which stay anyway."""
        count = len(node.results) - len(call.residuals)
        others = {id(v) for v in (*call.raw, *node.results[:count])}
        residuals = [
            self.packed(v) if hasattr(v, "nbytes") and v.base is None and id(v) not in others else v
            for v in call.residuals
        ]
        call.residuals, node.results, call.packed = residuals, [*node.results[:count], *residuals], True


def _watched(node: Node, operands: list[Any]) -> list[Any]:
    """Return the versions of a node's operands, also of those that share their memory with nobody yet."""
    found = {i: (i, version, number) for i, version, number in node.versions or ()}
    for i, t in enumerate(operands):
        if isinstance(t, Tensor) and i not in found:
            if t.storage_version is None:
                t.storage_version = VersionCounter()
            found[i] = (i, t.storage_version, t.storage_version.number)
    return list(found.values())
