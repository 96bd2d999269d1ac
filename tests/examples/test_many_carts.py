"""PPO with many actors: it learns, and the number of actors makes no difference."""

from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_carts_learn_alike_with_one_and_two_actors(example, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))  # which is handed to new processes
    carts = example("many_carts")
    two = carts.train(6, actors=2, engine="processes")
    assert max(two[4:]) > 1.5 * two[0]
    assert carts.train(2, actors=1, engine="processes") == two[:2]
