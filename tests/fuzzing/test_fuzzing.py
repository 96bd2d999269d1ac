"""Changed Programs are refused, or run natively without harm: a share in each run, more with `--soak`."""

import os

import pytest

from tests.fuzzing.corpus import entries
from tests.fuzzing.running import sweep

SEED = int(os.environ.get("DY2ST_FUZZ_SEED", "20261122"))


def faults(count: int, first: int = 0) -> list[tuple[int, str]]:
    return [(n, a) for n, a in sweep(SEED, range(first, first + count)) if a.startswith("FAULT")]


@pytest.mark.slow
def test_changed_programs_do_no_harm() -> None:
    assert faults(100) == []


@pytest.mark.soak
def test_many_changed_programs_do_no_harm() -> None:
    assert faults(50_000, 1_000_000) == []


@pytest.mark.slow
def test_every_program_of_the_corpus_is_taken_as_it_is() -> None:
    from dy2st.ir.serialize import from_json

    for name, data, arrays in entries():
        assert from_json(data, arrays) is not None, name
