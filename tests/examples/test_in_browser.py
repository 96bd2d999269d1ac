"""The page of four models, barely trained: each of its sections does what it says, in headless Chromium."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import dy2st as paddle
from tests.jit.c_library.chromium import Page, needs_chromium, page, served
from tests.jit.c_library.in_node import needs_zig


@pytest.fixture(scope="module")
def in_browser(example):
    return example("in_browser")


@pytest.fixture(scope="module")
def folder(in_browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("demos")
    in_browser.build(made, episodes=2, images=60, texts=2)
    return made


@pytest.fixture(scope="module")
def opened(folder: Path) -> Iterator[Page]:
    with served(folder) as url, page() as browser:
        browser.open(f"{url}/index.html", "document.querySelectorAll('[data-state]').length === 4")
        yield browser


def test_a_cart_stops_where_its_pole_has_fallen(in_browser):
    paddle.seed(0)
    cart = in_browser.Cart(in_browser.Policy())
    start = paddle.to_tensor(np.array([[0, 0, 0.1, 0]], np.float32))
    path = cart(start, 400).numpy()
    assert 1 < len(path) < 400
    assert abs(path[-1, 2]) > 0.21
    assert np.abs(path[:-1, 2]).max() <= 0.21
    assert cart(start, 3).shape == [4, 4]


def test_a_writer_ends_with_a_sentence_or_at_the_limit(in_browser):
    paddle.seed(0)
    written = in_browser.Writer(8)(paddle.to_tensor([3, 4, 5]), paddle.to_tensor(1.0), paddle.to_tensor(2000)).numpy()
    assert len(written) < 2000
    assert written[-1] == 0
    assert (written[:-1] > 0).all()


def test_a_learner_learns(in_browser):
    learner = in_browser.learner()
    losses = [float(learner.learn()) for _ in range(60)]
    assert np.mean(losses[-10:]) < 0.5 * np.mean(losses[:10])


@pytest.mark.slow
@needs_zig
@needs_chromium
def test_all_models_are_loaded(opened: Page):
    script = "return [...document.querySelectorAll('section')].map((s) => [s.dataset.state, s.innerText])"
    for state, text in opened.run(script):
        assert state == "ready", text


@pytest.mark.slow
@needs_zig
@needs_chromium
def test_what_is_drawn_is_read(opened: Page):
    chances = opened.run("""
        const canvas = document.querySelector("#digits canvas");
        const box = canvas.getBoundingClientRect();
        const at = (kind, x, y) => canvas.dispatchEvent(
          new PointerEvent(kind, { bubbles: true, clientX: box.left + x, clientY: box.top + y }));
        at("pointerdown", 100, 30);
        for (let y = 30; y < 170; y += 10) at("pointermove", 100, y);
        at("pointerup", 100, 170);
        return [...document.querySelectorAll(".bars li")].map((bar) => parseInt(bar.children[2].textContent));
    """)
    assert len(chances) == 10
    assert 95 <= sum(chances) <= 105


@pytest.mark.slow
@needs_zig
@needs_chromium
def test_the_cart_moves_and_text_is_written(opened: Page):
    opened.wait("Number(document.getElementById('cart').dataset.ticks) > 0")
    said = opened.run("return document.querySelector('#writer .time').textContent")
    assert said.split()[1:4] == ["characters", "in", said.split()[3]]
    assert opened.run("return document.getElementById('text').textContent").startswith("The loop ")


@pytest.mark.slow
@needs_zig
@needs_chromium
def test_the_field_is_learned_while_one_watches(opened: Page):
    opened.wait("Number(document.getElementById('field').dataset.steps) > 200")
    first, loss = opened.run("const { first, loss } = document.getElementById('field').dataset; return [+first, +loss]")
    assert loss < 0.2 * first
    opened.run("document.querySelector('#field .new').click(); document.querySelector('#field .go').click()")
    assert opened.run("return document.querySelector('#field .go').textContent") == "Go on"
