"""The one ContextVar of the project: what is current (builder, trace, grad mode, place, generator, amp, training).

A Context is immutable; `replaced` swaps it for the length of a `with`. What belongs to the whole process rather than
to a thread or task (the default place and generator) is in `process`, one object that every Context shares.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from dy2st.dtypes import DType, float32
from dy2st.ir.checkpoint import KEEP_ALL
from dy2st.records import record


@record(slots=True)
class Process:
    """Settings that every thread shares."""

    place: Any = None
    generator: Any = None
    default_dtype: DType = float32
    to_static_enabled: bool = True
    prim_enabled: bool = False
    names: Any = None
    initializers: Any = None
    programs: Any = None
    """The default (main, startup) of hand-built Programs."""
    scope: Any = None
    parallel: Any = None
    """The processes of the job (ops/collective/world.py), once `init_parallel_env` was called."""
    to_static: Any = None
    """Makes Programs of functions; `dy2st/__init__.py` sets it, because that is done far above."""
    library_program: Any = None
    """Makes a Program of a function of the library's own (composite.py), set there likewise."""
    paddle_files: Any = None
    """Returns the package that reads models of PaddlePaddle, for loaders that stand below it; set there likewise."""
    worker: Any = None
    """In a worker process of a DataLoader: which one it is."""
    flags: Any = None
    """What `set_flags` remembers by name."""
    native_from: float = 1 << 15
    """The elements of an operand from which on an eager op runs native code; infinite where none does."""
    walks_of_tape: float = 8
    """How often `backward()` walks a kind of tape before that runs as one Program; infinite where none does."""
    ops: Any = None
    """What is known of the calls of eager ops by op and attributes (frequent_ops.py); None where all go NumPy's way."""
    op_code: Any = None
    """Makes native code for calls of one eager op, set likewise."""
    looks_at_op: int = 128
    """Of so many calls of an eager op without code of their own one is looked at; 0: of each, and its code is made."""
    programs_from: float = 16
    """After how many calls of one kind a library function runs as a Program in eager mode; infinite: never."""
    verified_calls: int = 0
    """How many first calls of each Program run eagerly as well, to be compared (first_calls.py)."""


class Context:
    """What is current in this thread or task; nobody changes one.

    `trace` is None in eager mode; otherwise it is the `Recorder` that appends operations to a Program: a running
    to_static trace or a hand-built Program. `static` is the pair (main, startup) of hand-built Programs, `layer` the
    innermost running nn.Layer, `saved` the hooks on what the tape keeps, `checkpoint` what gradients keep of the
    iterations of loops (`checkpoint.py`).
    """

    __slots__ = ("amp", "checkpoint", "grad", "layer", "process", "saved", "static", "switched", "trace")

    def __init__(
        self,
        trace: Any = None,
        static: Any = None,
        grad: bool = True,
        amp: Any = None,
        layer: Any = None,
        saved: Any = None,
        checkpoint: str | int = KEEP_ALL,
        process: Process = Process(),  # noqa: B008 (every Context shares it)
    ):
        self.trace, self.static, self.grad, self.amp = trace, static, grad, amp
        self.layer, self.saved, self.checkpoint, self.process = layer, saved, checkpoint, process
        self.switched: Context | None = None
        """The same with gradients off, or on: kept where nothing runs, for `with_grad`."""


_CURRENT: ContextVar[Context] = ContextVar("dy2st", default=Context())  # noqa: B039 (nobody changes it)
current = _CURRENT.get
make_current = _CURRENT.set


def _changed(x: Context, changes: dict[str, Any]) -> Context:
    made = Context(x.trace, x.static, x.grad, x.amp, x.layer, x.saved, x.checkpoint, x.process)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def with_grad(grad: bool) -> tuple[Context, Context]:
    """Turn gradients on or off, as `switch(grad=...)` does in three times the time; return what was and is current."""
    x = after = _CURRENT.get()
    if x.grad is not grad:
        after = x.switched
        if after is None:
            after = Context(x.trace, x.static, grad, x.amp, x.layer, x.saved, x.checkpoint, x.process)
            if x.trace is None and x.layer is None:
                x.switched, after.switched = after, x
        _CURRENT.set(after)
    return x, after


def with_layer(layer: Any) -> Context:
    """Make a layer the one that runs, as `replaced(layer=layer)` does in three times the time; return what was current.

    `make_current` of that takes it back.
    """
    x = _CURRENT.get()
    _CURRENT.set(Context(x.trace, x.static, x.grad, x.amp, layer, x.saved, x.checkpoint, x.process))
    return x


def as_before(before: Context, after: Context) -> None:
    """Take back what `with_grad` did; other changes since then stay."""
    if _CURRENT.get() is after:
        _CURRENT.set(before)
    else:
        with_grad(before.grad)


def switch(**changes: Any) -> None:
    """Change the current context until it is changed again (enable_static)."""
    _CURRENT.set(_changed(_CURRENT.get(), changes))


class replaced:  # noqa: N801  read as a verb: `with replaced(grad=False):`
    """Change the current context for the length of a `with`."""

    __slots__ = ("_changes", "_token")

    def __init__(self, **changes: Any):
        self._changes = changes

    def __enter__(self) -> Context:
        context = _changed(_CURRENT.get(), self._changes)
        self._token = _CURRENT.set(context)
        return context

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._token)
