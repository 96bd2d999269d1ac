"""What a backend has to implement, as the executor sees it: code of a Program, made now or found, and how it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from dy2st.ir.program import Program


class Runnable(Protocol):
    """A Program that is ready to run."""

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Run on arrays, numbers, lists and variants; return the results of the entry function."""
        ...


@runtime_checkable
class Reporting(Runnable, Protocol):
    """A Program that tells how it runs."""

    def report(self) -> Any:
        """Return what `explain()` says of it."""
        ...


class NativeSpecialization(Protocol):
    """One version of native code, as far as reports tell of it."""

    was_cached: bool
    seconds: float
    elsewhere: int

    @property
    def host_calls(self) -> Sequence[Any]:
        """The operations that every run leaves to Python, each with its `name`."""
        ...

    @property
    def peak(self) -> int:
        """The most bytes that the last run held at a time."""
        ...


class DirectCall(Protocol):
    """One version of native code, as a caller runs it that has the inputs one by one."""

    call: Callable[..., Any]
    """Gives the list of results; False, before anything is done, for inputs that it does not take as they are; or a
    number for `ended`."""

    def ended(self, made: int, inputs: Sequence[Any]) -> list[Any]:
        """Return the results after all, or raise the error of the run."""
        ...


class NativeCode(Runnable, Protocol):
    """Native code of a Program."""

    @property
    def latest(self) -> DirectCall | None:
        """The version that ran last."""
        ...

    @property
    def plans(self) -> Sequence[NativeSpecialization]:
        """Its versions."""
        ...

    @property
    def is_worth_it(self) -> bool:
        """Whether it is likely to be faster than a plan."""
        ...

    @property
    def is_quick(self) -> bool:
        """Whether it is baseline code."""
        ...

    def improve(self) -> None:
        """Make it anew, as good as it gets, and take it."""
        ...


class Backend(Protocol):
    """The module of a backend that makes code."""

    def native_code_for(
        self, program: Program, bound: dict[str, int] | None, *, strict: bool = False, quick: bool = False
    ) -> NativeCode:
        """Return code for inputs in which symbolic extents are `bound`: `strict` as to bits, `quick` to make."""
        ...

    def cached_code(self, program: Program, inputs: Sequence[Any]) -> NativeCode | None:
        """Return code that an earlier process left for a Program, ready for these inputs; None where there is none."""
        ...
