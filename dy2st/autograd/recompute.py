"""`recompute`: keep no intermediate values of a function, and compute them again when gradients need them.

The function is recorded as ever, but hooks (`saved_tensors_hooks`) keep a number in place of each array. The first one
that is asked for runs the function again; the arrays that this second run would keep are those that are asked for. So
parameters, closures, and derivatives of any order work as without it (Chen et al. 2016, arXiv:1604.06174).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.autograd.rules import callable_here
from dy2st.errors import AutodiffError
from dy2st.ir.context import current, replaced
from dy2st.runtime.eager.rng import default_generator
from dy2st.runtime.eager.saved_tensor_hooks import saved_tensors_hooks
from dy2st.runtime.eager.tensor import Tensor


def recompute(
    function: Callable[..., Any], *args: Any, preserve_rng_state: bool = True, use_reentrant: bool = True, **kwargs: Any
) -> Any:
    """Return function(*args, **kwargs), and run it a second time for its gradients instead of keeping what they need.

    Parameters
    ----------
    function
        A layer or function. It must do the same both times; what it does besides (counts, running means) it does twice.
    preserve_rng_state
        Whether random numbers are the same the second time.
    use_reentrant
        Makes no difference; for code that says it.

    In a function that `to_static` converts this is the call alone: a Program decides by itself what it keeps; for the
    iterations of a loop there is `autograd.checkpoint_policy`.

    Raises
    ------
    AutodiffError
        When gradients are computed, where the function then does something else, or where one of its tensors was
        changed in place since.

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor([0.5, 1.0], stop_gradient=False)
    >>> y = paddle.distributed.fleet.utils.recompute(lambda t: paddle.exp(paddle.sin(t)), x)
    >>> y.sum().backward()
    >>> bool(paddle.allclose(x.grad, paddle.exp(paddle.sin(x)) * paddle.cos(x)))
    True
    """
    if not callable(function):
        raise TypeError(f"recompute: function must be callable, not {type(function).__name__}")
    context = current()
    if context.trace is not None:
        return callable_here(function)(*args, **kwargs)
    if not context.grad:
        return function(*args, **kwargs)
    again = _Again(function, args, kwargs, preserve_rng_state)
    with saved_tensors_hooks(again.pack, again.unpack):
        out = function(*args, **kwargs)
    again.finish()
    return out


class _Again:
    """The second run of a function, when the first array is asked for."""

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any, preserve: bool):
        self._function, self._args, self._kwargs = function, args, kwargs
        self._state = default_generator().get_state() if preserve else None
        self._amp = current().amp
        self._kept, self._finished = 0, False
        self._found: dict[int, Tensor] = {}
        """Arrays that are at hand: all while the function runs (it may compute gradients itself), none behind it."""
        self._versions = [(t, _version(t)) for t in (*args, *kwargs.values()) if isinstance(t, Tensor)]

    def pack(self, t: Tensor) -> int:
        """Return the number of an array that is not kept for long."""
        self._found[self._kept] = t
        self._kept += 1
        return self._kept - 1

    def finish(self) -> None:
        """Let go of the arrays."""
        self._finished = True
        self._found.clear()

    def unpack(self, number: int) -> Tensor:
        """Return the array, after a second run where it is not there."""
        if not self._finished:
            return self._found[number]
        if number not in self._found:
            self._run()
        return self._found.pop(number)

    def _run(self) -> None:
        for t, version in self._versions:
            if _version(t) != version:
                raise AutodiffError(
                    f"the tensor {t.name} was changed in place after recompute used it; clone() it before"
                )
        found: list[Tensor] = []

        def pack(t: Tensor) -> Tensor:
            found.append(t)
            return t

        generator = default_generator()
        before = generator.get_state()
        if self._state is not None:
            generator.set_state(self._state)
        try:
            with replaced(grad=True, amp=self._amp), saved_tensors_hooks(pack, _itself):
                self._function(*self._args, **self._kwargs)
        finally:
            if self._state is not None:
                generator.set_state(before)
        if len(found) != self._kept:
            raise AutodiffError(
                f"recompute: the function kept {self._kept} values for its gradients the first time, and "
                f"{len(found)} the second time; it must do the same both times"
            )
        self._found = dict(enumerate(found))


def _itself(packed: Tensor) -> Tensor:
    return packed


def _version(t: Tensor) -> int:
    return 0 if t.storage_version is None else t.storage_version.number
