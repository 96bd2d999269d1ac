"""Native code between forbidden pages, for tests that ask for it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from dy2st.runtime.cpu.native import NativePlan
from tests.runtime.cpu.native import Guarded


@pytest.fixture(autouse=True)
def beside() -> None:
    """Run nothing a second time: these tests compare native code with the interpreter themselves."""


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every block of native code, and every input, a forbidden page behind it."""
    monkeypatch.setenv("DY2ST_GUARD", "1")
    for name in ("run", "attempt"):
        monkeypatch.setattr(NativePlan, name, _on_guarded_inputs(getattr(NativePlan, name)))


def _on_guarded_inputs(run: Callable[..., Any]) -> Callable[..., Any]:
    def on_guarded_inputs(plan: NativePlan, inputs: Sequence[Any]) -> Any:
        return run(plan, [Guarded(x).array if _lies_together(x) else x for x in inputs])

    return on_guarded_inputs


def _lies_together(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.flags.c_contiguous
