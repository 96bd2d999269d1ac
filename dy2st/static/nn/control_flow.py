"""Control flow as functions: `cond`, `while_loop`, `case`, `switch_case`.

In a Program that is being built (by hand or by to_static) they become its control flow; in eager mode they run Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dy2st.autograd.recompute import recompute
from dy2st.errors import StructureError
from dy2st.ir.checkpoint import KEEP_ALL, SQRT
from dy2st.ir.context import current
from dy2st.ir.location import error_here, user_location
from dy2st.ir.program import Value, tensor_type
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.control_flow.assert_raise import assert_
from dy2st.runtime.tracer.control_flow.conditional import if_exp
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.loops.loop_statement import while_
from dy2st.runtime.tracer.recording.loop_checkpointing import Policy, valid_policy
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.union import Variant

Branch = Callable[[], Any]


def cond(
    pred: Any, true_fn: Branch | None = None, false_fn: Branch | None = None, name: str | None = None,
    return_names: Any = None,
) -> Any:  # fmt: skip
    """Return what `true_fn` returns where `pred` is true, else what `false_fn` returns.

    Parameters
    ----------
    pred
        A tensor of one element, or a bool.
    true_fn, false_fn
        Functions without arguments. Both return the same structure of tensors (of any shapes, of one dtype at each
        place); None for nothing.

    Raises
    ------
    StructureError
        Where the branches return different structures.

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor([2.0])
    >>> paddle.static.nn.cond(x.sum() > 1, lambda: x * 10, lambda: x).tolist()
    [20.0]
    """
    for what, given in (("true_fn", true_fn), ("false_fn", false_fn)):
        if given is not None and not callable(given):
            raise TypeError(f"cond: {what} must be a function, not {type(given).__name__}")
    trace = current().trace
    then, other = _converted(trace, true_fn), _converted(trace, false_fn)
    _one_element(pred, "cond: pred")
    if trace is None or not trace.is_symbolic(pred):
        return then() if pred else other()
    made = if_exp(trace, pred, then, other)
    if _differs(made):
        raise _error("cond: true_fn and false_fn return different things; both must return the same structure of "
                     "tensors, with one dtype at each place")  # fmt: skip
    return made


def while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Sequence[Any], is_test: bool = False,
    name: str | None = None, checkpoint: Policy | None = None,
) -> list[Any]:  # fmt: skip
    """Run `body` on the loop variables while `cond` of them is true; return the last ones, as a list.

    Parameters
    ----------
    cond
        Takes the loop variables, returns a tensor of one element (or a bool).
    body
        Takes the loop variables, returns as many new ones, of the same dtypes. Shapes may change.
    loop_vars
        A list or tuple of tensors, numbers, or lists and dicts of them; not empty.
    checkpoint
        What gradients keep of the iterations: "all", "sqrt" or the number of iterations between checkpoints, as in
        `autograd.checkpoint_policy`, which it overrides.

    >>> import dy2st as paddle
    >>> i = paddle.full([1], 0, "int64")
    >>> paddle.static.nn.while_loop(lambda i: i < 10, lambda i: i + 3, [i])[0].tolist()
    [12]
    """
    for what, given in (("cond", cond), ("body", body)):
        if not callable(given):
            raise TypeError(f"while_loop: {what} must be a function, not {type(given).__name__}")
    if not isinstance(loop_vars, (list, tuple)):
        raise TypeError(f"while_loop: loop_vars must be a list or tuple, not {type(loop_vars).__name__}")
    if not loop_vars:
        raise ValueError("while_loop: loop_vars must not be empty")
    if checkpoint is not None:
        valid_policy(checkpoint)
    trace = current().trace
    cond, body = _converted(trace, cond), _converted(trace, body)
    now: list[Any] = list(loop_vars)

    def put(values: Sequence[Any]) -> None:
        now[:] = values

    def turn() -> None:
        put(_as_many(body(*now), len(now)))

    def holds(*values: Any) -> Any:
        go = cond(*values)
        _one_element(go, "while_loop: what cond returns")
        return go

    def test() -> Any:
        return holds(*now)

    if trace is None:
        if checkpoint not in (None, KEEP_ALL):
            return _in_segments(holds, body, now, checkpoint)
        while test():
            turn()
        return now
    while_(trace, test, turn, lambda: tuple(now), put, [f"loop_vars[{i}]" for i in range(len(now))], checkpoint)
    return now


def _in_segments(
    holds: Callable[..., Any], body: Callable[..., Any], now: list[Any], checkpoint: Policy
) -> list[Any]:  # fmt: skip
    """Run an eager loop segment by segment, each of which `recompute` runs again where gradients need it."""

    def segment(turns: int, *values: Any) -> tuple[bool, list[Any]]:
        left = list(values)
        for _ in range(turns):
            left = _as_many(body(*left), len(left))
            if not holds(*left):
                return False, left
        return True, left

    turns = 1 if checkpoint == SQRT else int(checkpoint)
    go = bool(holds(*now))
    while go:
        go, now = recompute(segment, turns, *now)
        turns += int(checkpoint == SQRT)
    return now


def case(pred_fn_pairs: Sequence[tuple[Any, Branch]], default: Branch | None = None, name: str | None = None) -> Any:
    """Return what the function behind the first true predicate returns, else what `default` returns.

    Without a `default` the last function stands for it.

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor(3.0)
    >>> float(paddle.static.nn.case([(x < 1, lambda: x), (x < 5, lambda: x * 2)], lambda: x * 3))
    6.0
    """
    if not isinstance(pred_fn_pairs, (list, tuple)) or not pred_fn_pairs:
        raise TypeError("case: pred_fn_pairs must be a list of pairs (predicate, function), not empty")
    for pair in pred_fn_pairs:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not callable(pair[1]):
            raise TypeError(f"case: each of pred_fn_pairs is a pair (predicate, function), not {pair!r}")
    if default is not None and not callable(default):
        raise TypeError(f"case: default must be a function, not {type(default).__name__}")
    pairs = list(pred_fn_pairs)
    chosen: Branch = default if default is not None else pairs.pop()[1]
    for pred, function in reversed(pairs):
        chosen = _either(pred, function, chosen)
    return chosen()


def switch_case(branch_index: Any, branch_fns: Any, default: Branch | None = None, name: str | None = None) -> Any:
    """Return what the function numbered `branch_index` returns, else what `default` returns.

    `branch_fns` is a list of functions, a list of pairs (number, function), or a dict. Without a `default` the function
    of the largest number stands for it.

    >>> import dy2st as paddle
    >>> i = paddle.to_tensor(1)
    >>> paddle.static.nn.switch_case(i, [lambda: "a", lambda: "b"])
    'b'
    """
    branches = _numbered(branch_fns)
    if default is not None and not callable(default):
        raise TypeError(f"switch_case: default must be a function, not {type(default).__name__}")
    if not isinstance(branch_index, (Tensor, Scalar, int, np.integer)):
        raise TypeError(f"switch_case: branch_index must be an integer, not {type(branch_index).__name__}")
    if isinstance(branch_index, Tensor) and not branch_index.dtype.is_integer and not branch_index.dtype.is_bool:
        raise TypeError(f"switch_case: branch_index must be an integer, not {branch_index.dtype.name}")
    return case([(branch_index == i, function) for i, function in branches], default)


def Assert(cond: Any, data: Sequence[Any] | None = None, summarize: int = 20, name: str | None = None) -> None:
    """Raise AssertionError where a tensor of one element is false; its text shows `data`, at most `summarize` elements.

    In a Program that is being built the text shows all elements of `data`.

    >>> import dy2st as paddle
    >>> paddle.static.nn.control_flow.Assert(paddle.to_tensor(True))
    """
    _one_element(cond, "Assert: cond")
    if data is not None and not isinstance(data, (list, tuple)):
        raise TypeError(f"Assert: data must be a list or tuple of tensors, not {type(data).__name__}")
    trace = current().trace
    if trace is not None:
        assert_(trace, lambda: cond, None if data is None else lambda: list(data))
    elif not cond:
        raise AssertionError(*(() if data is None else ([_few(x, summarize) for x in data],)))


def _few(x: Any, most: int) -> Any:
    """Return the first elements of a tensor, all of them where `most` is negative."""
    if not isinstance(x, Tensor):
        return x
    elements = x.numpy().reshape(-1)
    return elements[: most if most >= 0 else None].tolist()


def _numbered(branch_fns: Any) -> list[tuple[int, Branch]]:
    """Return pairs (number, function) by number."""
    listed = list(branch_fns.items()) if isinstance(branch_fns, Mapping) else branch_fns
    if not isinstance(listed, (list, tuple)) or not listed:
        raise TypeError("switch_case: branch_fns must be a list of functions or pairs (number, function), or a dict")
    pairs = [p if isinstance(p, (list, tuple)) else (i, p) for i, p in enumerate(listed)]
    for pair in pairs:
        if len(pair) != 2 or not isinstance(pair[0], int) or not callable(pair[1]):
            raise TypeError(f"switch_case: a branch is a function or a pair (number, function), not {pair!r}")
    if len({i for i, _ in pairs}) != len(pairs):
        raise ValueError("switch_case: two branches have one number")
    return sorted(((int(i), f) for i, f in pairs), key=lambda pair: pair[0])


def _either(pred: Any, then: Branch, other: Branch) -> Branch:
    return lambda: cond(pred, then, other)


def _converted(trace: Trace | None, function: Callable[..., Any] | None) -> Callable[..., Any]:
    if function is None:
        return _nothing
    return function if trace is None else trace.convert(function)


def _nothing() -> None:
    """Return nothing: the branch that was not given."""


def _one_element(x: Any, what: str) -> None:
    """Refuse what cannot decide a branch or a loop."""
    if x is None or isinstance(x, (str, list, tuple, dict)):
        raise TypeError(f"{what} must be a tensor of one element or a bool, not {type(x).__name__}")
    if not isinstance(x, Tensor):
        return
    payload = x.payload
    shape = tensor_type(payload).shape if isinstance(payload, Value) else payload.shape
    if any(isinstance(e, int) and e != 1 for e in shape):
        raise ValueError(f"{what} must have one element, not the shape [{', '.join(map(str, shape))}]")


def _as_many(returned: Any, count: int) -> list[Any]:
    listed = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    if len(listed) != count:
        raise _value_error(f"while_loop: body takes {count} loop variables and must return as many, not {len(listed)}")
    return listed


def _differs(made: Any) -> bool:
    if isinstance(made, Mapping):
        made = list(made.values())
    if isinstance(made, (list, tuple)):
        return any(map(_differs, made))
    return isinstance(made, Variant) and hasattr(current().trace, "feeds")


def _error(message: str) -> StructureError:
    return error_here(StructureError, message)


def _value_error(message: str) -> ValueError:
    place = user_location()
    return ValueError(f"{message}\n  at {place}" if place else message)
