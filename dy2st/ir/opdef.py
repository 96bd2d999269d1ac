"""What the IR knows of an op: its name, type rule and effects. `ops/` defines them; import fills the registry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from dy2st.dtypes import DType
from dy2st.ir.traits import Traits
from dy2st.ir.types import TensorType, Type

if TYPE_CHECKING:
    from dy2st.ir.program import Block

F = TypeVar("F")
REGISTRY: dict[str, OpDef] = {}
EVERY_KIND = "biufc"
"""The kinds of dtypes, as NumPy writes them: bool, signed and unsigned integers, floats, complex numbers."""
REAL_NUMBERS = "biuf"


class OpDef(Traits):
    """The part of an op that the IR needs."""

    name: ClassVar[str] = ""
    attributes: ClassVar[tuple[str, ...]] = ()
    may_lack: ClassVar[tuple[str, ...]] = ()
    """Attributes that need not be there: the op says what it does without."""
    blocks: ClassVar[int] = 0
    """How many sub-blocks the op has."""
    place: ClassVar[str] = ""
    """The attribute that is a place in the user's source, (file, line): treated as the location of an operation is."""
    defined_on: ClassVar[str | tuple[str, ...]] = EVERY_KIND
    """The kinds of dtypes that the op takes: those of all tensors among the operands, or of one operand after another.

    Others are refused with one TypeError, when a Program is built, loaded or run, and in eager mode
    (docs/dtypes-of-ops.md has the table).
    """
    saveable: ClassVar[bool] = True
    """The op may stand in a file; False for one that calls back into the process that made it (a host callback)."""

    def infer(self, *types: Any, **attributes: Any) -> Type | tuple[Type | None, ...]:
        """Return the type of the result, or a tuple of types. An extent of None is one known only at run time."""
        raise TypeError(f"{self.name} has no type rule")

    def infer_operation(self, types: Sequence[Type], attributes: dict[str, Any], blocks: Sequence[Block]) -> Any:
        """Return the result types of an operation with sub-blocks; the others have `infer`."""
        if self.defined_on is not EVERY_KIND:
            self.refuse_dtypes([t.dtype if isinstance(t, TensorType) else None for t in types])
        return self.infer(*types, **attributes)

    def refuse_dtypes(self, dtypes: Sequence[DType | None]) -> None:
        """Raise TypeError where the op is not defined on operands of these dtypes (None: no tensor)."""
        kinds = self.defined_on
        for place, dtype in enumerate(dtypes):
            taken = kinds if isinstance(kinds, str) else kinds[min(place, len(kinds) - 1)]
            if dtype is not None and dtype.kind not in taken:
                raise undefined(self.name, dtypes)

    def can_raise(self, types: Sequence[Type], attributes: dict[str, Any]) -> bool:
        """Return whether the op can raise on operands of these types: an op that `may_raise` may know that it does
        not.
        """
        return self.may_raise

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def undefined(name: str, dtypes: Sequence[DType | None]) -> TypeError:
    """Return the error for a function that has no meaning on tensors of these dtypes."""
    names = dict.fromkeys(dtype.name for dtype in dtypes if dtype is not None)
    return TypeError(f"{name} is not defined on {' and '.join(names)} tensors")


def register(op: OpDef) -> None:
    """Add an op to the registry; its name must be new."""
    if op.name in REGISTRY:
        raise ValueError(f"two ops are named {op.name!r}")
    REGISTRY[op.name] = op


def entering(rules: dict[str, F]) -> Callable[..., Callable[[F], F]]:
    """Return a decorator that enters a function into `rules` for the ops that it names; each has one at most."""

    def rule(*names: str) -> Callable[[F], F]:
        def enter(function: F) -> F:
            for name in names:
                if name in rules:
                    raise ValueError(f"two rules are for {name!r}")
                rules[name] = function
            return function

        return enter

    return rule


def lookup(name: str) -> OpDef:
    """Return the op of this name; KeyError where there is none."""
    try:
        return REGISTRY[name]
    except KeyError:
        raise KeyError(f"no op is named {name!r}") from None
