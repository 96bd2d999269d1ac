"""Libraries are compared with native code."""

import pytest


@pytest.fixture(autouse=True)
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run Programs as native code from their first call on."""
    monkeypatch.setenv("DY2ST_BACKEND", "native")
