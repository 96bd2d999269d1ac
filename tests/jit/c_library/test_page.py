"""The page that stands beside a module, in headless Chromium."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.static import InputSpec
from tests.jit.c_library.chromium import Page, needs_chromium, page, served
from tests.jit.c_library.in_node import built, needs_zig

pytestmark = [pytest.mark.slow, needs_zig, needs_chromium]


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with page() as opened:
        yield opened


def scaled(x, turns, sign):
    """Return x * 2 ** turns, the number of its elements, and whether it is negative."""
    if paddle.sum(x) > 100:
        raise ValueError("the sum is <too> large")
    for _ in range(turns):
        x = x * 2
    return (x if sign else -x), turns + 1


SPEC = [InputSpec([None, 3], name="x"), InputSpec([], "int64", name="turns"), InputSpec([], "bool", name="sign")]


def test_the_form_of_a_page_runs_the_model(browser: Page, tmp_path: Path) -> None:
    built(scaled, SPEC, tmp_path)
    with served(tmp_path) as url:
        browser.open(f"{url}/index.html", "document.querySelector('button')")

        def shown(data: str, shape: str, turns: str) -> Any:
            return browser.run(f"""
                const [x, turns, sign] = document.querySelectorAll("textarea");
                [x.value, turns.value, sign.value] = ["{data}", "{turns}", "true"];
                document.querySelector("input").value = "{shape}";
                document.querySelector("button").click();
                const said = document.querySelector("pre");
                return [said.className, said.textContent.split("\\n")];
            """)

        kind, lines = shown("1 2 3, 4 5.5 6", "2 3", "4")
        assert (kind, lines[:3]) == ("", ["output_0 [2, 3]:", "16 32 48 64 88 96", "output_1: 5"])
        assert lines[3].endswith(" ms")
        kind, lines = shown("1 2", "1 2", "4")
        assert (kind, lines) == ("error", ["input 'x': extent 2 of axis 1 is to be 3"])
        kind, lines = shown("100 2 1", "1 3", "4")
        assert kind == "error"
        assert lines[0].startswith("ValueError: the sum is <too> large (")
        assert "test_page.py:" in lines[0]


def test_a_page_says_why_it_has_no_model(browser: Page, tmp_path: Path) -> None:
    built(scaled, SPEC, tmp_path)
    (tmp_path / "model.wasm").unlink()
    with served(tmp_path) as url:
        browser.open(f"{url}/index.html", "document.querySelector('pre.error')")
        assert "model.wasm: 404" in browser.run("return document.querySelector('pre').textContent")


@pytest.mark.parametrize("strict", [True, False])
def test_a_browser_gives_what_python_gives(strict: bool, browser: Page, tmp_path: Path) -> None:
    paddle.seed(1)
    net = paddle.vision.models.LeNet()
    net.eval()
    built(net, [InputSpec([None, 1, 28, 28], name="x")], tmp_path, strict=strict)
    x = np.sin(np.arange(784, dtype=np.float32)).reshape(1, 1, 28, 28)
    wanted = paddle.jit.to_static(net, strict=strict)(paddle.to_tensor(x)).numpy()
    with served(tmp_path) as url:
        browser.open(f"{url}/index.html", "document.querySelector('button')")
        made = browser.run(f"""
            const {{ load }} = await import("./model.mjs");
            const x = {{ data: {x.ravel().tolist()}, shape: [1, 1, 28, 28] }};
            return Array.from((await load()).forward({{ x }}).output.data);
        """)
    np.testing.assert_allclose([made], wanted, rtol=0 if strict else 1e-5, atol=0 if strict else 1e-6)
