"""The recipes, a few steps each: nothing runs eagerly, a killed training goes on as if it had not been; the figures."""

import doctest
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dy2st as paddle
from dev import RECIPES
from tests.peers import paddle_recipes

ROOT = Path(__file__).parents[2]


class Killed(Exception):
    """Stands for whatever ends a process between two checkpoints."""


@pytest.fixture
def recipe(example):
    """Return a function that runs a recipe for a few steps, on small data, with what it put under `to_static`."""
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
    return lambda name: example(name)


@pytest.fixture
def made(monkeypatch):
    """Return a list of all that goes through `to_static`."""
    found, to_static = [], paddle.jit.to_static

    def noting(*args, **keywords):
        found.append(to_static(*args, **keywords))
        return found[-1]

    monkeypatch.setattr(paddle.jit, "to_static", noting)
    return found


def small(module, monkeypatch):
    for name, value in {"BATCH": 8, "TEST": 6, "CARTS": 4, "TICKS": 8, "LIMIT": 20}.items():
        if hasattr(module, name):
            monkeypatch.setattr(module, name, value)
    if hasattr(module, "load_digits"):
        few = [part[:40] for part in module.load_digits(return_X_y=True)]
        monkeypatch.setattr(module, "load_digits", lambda return_X_y: few)


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_a_killed_training_goes_on_as_if_it_had_not_been(name, recipe, made, monkeypatch, tmp_path):
    module = recipe(name)
    small(module, monkeypatch)
    training = sys.modules["training"]
    keep = training.Keeper.keep

    def killed(keeper, figure):
        keep(keeper, figure)
        raise Killed

    for folder in ("whole", "killed"):
        (tmp_path / folder).mkdir()
    whole = module.recipe(tmp_path / "whole", 4)
    with monkeypatch.context() as patch:
        patch.setattr(training.Keeper, "keep", killed)
        with pytest.raises(Killed):
            module.recipe(tmp_path / "killed", 4)
    again = module.recipe(tmp_path / "killed", 4, resume=True)
    assert (again.losses, again.figures) == (whole.losses, whole.figures)
    assert len(whole.figures) >= 2
    for static in made:
        assert "no fallback" in str(getattr(static, "forward", static).explain())


@pytest.mark.soak
@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_reaches_its_figure(name, recipe, tmp_path):
    module = recipe(name)
    curves = module.recipe(tmp_path, module.STEPS)
    assert module.GOAL.reached(curves.reached(module.GOAL))
    assert [path.read_text()[:4] for path in curves.draw(tmp_path, module.GOAL)] == ["<svg"] * 2


def test_training_stops_where_the_figure_is_good_enough_or_gets_no_better(example):
    training = example("training")
    goal = training.Goal("error", 0.1, highest=False, patience=2)
    assert not training.Curves().ended(goal)
    assert training.Curves(figures=[0.5, 0.1]).ended(goal)
    assert not training.Curves(figures=[0.5, 0.4, 0.6]).ended(goal)
    assert training.Curves(figures=[0.4, 0.5, 0.6]).ended(goal)
    assert not training.Curves(figures=[0.05]).ended(training.Goal("error", 0.1, False, 2, stops=False))


def test_there_is_nothing_to_go_on_from(example, tmp_path):
    training = example("training")
    keeper = training.Keeper({"model": paddle.nn.Linear(1, 1)}, training.Goal("loss", 0.0), tmp_path)
    with pytest.raises(FileNotFoundError, match=r"last\.pdstate"):
        keeper.resume()


def test_the_best_model_is_what_remains(example, tmp_path):
    training = example("training")
    model = paddle.nn.Linear(1, 1)
    figures = iter([0.2, 0.9, 0.3])

    def step(number):
        model.weight.set_value(paddle.full([1, 1], float(number)))
        return paddle.to_tensor(1.0)

    keeper = training.Keeper({"model": model}, training.Goal("accuracy", 0.95), tmp_path)
    curves = training.train(step, lambda: next(figures), keeper, 3, every=1)
    assert curves.figures == [0.2, 0.9, 0.3]
    assert float(model.weight) == 1.0


def test_a_cart_moves_as_in_gymnasium_and_stands_until_it_falls(example):
    ppo = example("cart_ppo")
    moved = ppo.move(paddle.zeros([1, 4]), paddle.to_tensor([1]))
    np.testing.assert_allclose(moved.numpy(), [[0, 0.19512195, 0, -0.29268293]], rtol=1e-6)

    def leftwards(state):
        return paddle.to_tensor([[1.0, 0.0]]).expand([state.shape[0], 2]), None

    stood = [float(stands(leftwards, 5)) for stands in (ppo.standing, paddle.jit.to_static(ppo.standing))]
    assert all(7 < ticks < 13 for ticks in stood)


def test_advantages_are_what_the_recurrence_says(example):
    ppo = example("cart_ppo")
    values, goes_on = np.array([[1.0], [2.0], [3.0]], "float32"), np.array([[1.0], [0.0]], "float32")
    last = 1 - 2.0
    first = 1 + ppo.DISCOUNT * 2 - 1 + ppo.DISCOUNT * ppo.SMOOTH * last
    found = ppo.advantages(paddle.to_tensor(values), paddle.to_tensor(goes_on))
    np.testing.assert_allclose(found.numpy(), [[first], [last]], rtol=1e-6)


def test_a_plain_axis_takes_any_finite_value(example, tmp_path):
    drawing = example("drawing")
    drawing.plot(tmp_path / "curve.svg", "gain", {"gain": [-1.0, 0.0, 2.0]})
    assert "points=" in (tmp_path / "curve.svg").read_text()
    with pytest.raises(ValueError, match="an axis has finite values only"):
        drawing.plot(tmp_path / "curve.svg", "", {"gain": [float("nan")]})


def test_the_grammar_knows_its_own_sentences(example, rng):
    grammar = example("grammar")
    assert doctest.testmod(grammar).failed == 0
    drawn = [grammar.sentence(rng) for _ in range(200)]
    assert all(grammar.grammatical(one.words) for one in drawn)
    assert not any(grammar.grammatical(one.words[:-1]) for one in drawn)
    assert not any(grammar.grammatical((*one.words[:-1], "vbao", "vbae")) for one in drawn)


def test_a_recipe_is_rewritten_for_paddlepaddle():
    assert doctest.testmod(paddle_recipes).failed == 0
    for name in RECIPES:
        source = paddle_recipes.as_paddle((ROOT / "examples" / f"{name}.py").read_text())
        assert "import paddle" in source
        assert "dy2st" not in source


def test_the_recipes_are_listed():
    done = subprocess.run([sys.executable, "dev.py", "demo", "--list"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == [*RECIPES]


def test_an_unknown_recipe_is_one_line():
    done = subprocess.run([sys.executable, "dev.py", "demo", "lunch"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "there is no recipe lunch: " in done.stderr
