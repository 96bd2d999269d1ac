"""Random functions of tensors act the same eagerly and as one Program: values, types, prints, state, gradients."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings

from tests.generator.outcomes import difference
from tests.generator.statements import programs
from tests.shares import examples

SHARDS, EXAMPLES = 4, 150
"""Few: seeds name thousands more (tests/generator/__main__.py). What hypothesis finds it makes small at once."""

_RAISES = "an exception that only the run will raise takes a tensor that needs a gradient out"
"""What a Program cannot hand over, and the generator writes often."""


def check(shard: int, examples: int) -> None:
    """Run programs both ways; hypothesis makes the first that differs small."""
    seen: set[str] = set()
    refused: list[str] = []
    raising: list[str] = []

    @seed(shard)
    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(programs())
    def agree(text: str) -> None:
        found: Any = None if text in seen else difference(text)
        if found is not None and "refused" in found.static:
            told = found.static["refused"]
            (raising if _RAISES in told else refused).append(told)
        else:
            assert found is None, str(found)
        seen.add(text)

    agree()
    assert len(seen) > examples // 2
    for told in (refused, raising):
        assert len(told) <= 1 + len(seen) // 20, told  # what is refused runs eagerly, with a warning


def test_programs_are_the_same() -> None:
    check(0, examples(40))


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(1, SHARDS + 1))
def test_hundreds_of_programs_are_the_same(shard: int) -> None:
    check(shard, EXAMPLES)


@pytest.mark.soak
@pytest.mark.parametrize("shard", range(100, 140))
def test_100000_programs_are_the_same(shard: int) -> None:
    check(shard, 2_500)
