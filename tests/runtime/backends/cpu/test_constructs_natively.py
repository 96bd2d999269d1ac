"""The constructs of tests/jit and random programs, run as native code."""

import pytest

from tests.jit import test_constructs as constructs


@pytest.fixture(autouse=True)
def native(monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")


@pytest.mark.parametrize("case", constructs.CASES, ids=lambda c: f"{c.group}-{c.name}")
def test_construct(case, request):
    constructs.test_construct(case, request)
