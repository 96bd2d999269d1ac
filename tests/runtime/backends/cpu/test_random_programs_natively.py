"""Random functions act the same eagerly and natively, between forbidden pages (tests/generator/test_as_eager.py)."""

import pytest

from tests.generator.test_as_eager import check
from tests.shares import examples


@pytest.fixture(autouse=True)
def natively(guarded, monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")


def test_programs_are_the_same():
    check(0, examples(4))


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(1, 6))
def test_hundreds_of_programs_are_the_same(shard):
    check(shard, 60)
