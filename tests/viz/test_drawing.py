"""Pictures of everything that can be drawn: well-formed, self-contained, and they say what a reader looks for."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import dy2st as paddle
from dy2st import viz
from dy2st.dtypes import float32
from dy2st.errors import FileFormatError
from dy2st.ir.builder import Builder
from dy2st.ir.parser import parse
from dy2st.ir.program import Program
from dy2st.ir.types import TensorType
from dy2st.runtime.tracer.input_spec import InputSpec
from dy2st.shapes import symbol
from dy2st.viz.graph import panels_of
from tests.ir import programs
from tests.jit.saved_models import Chooser, X, refiner

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    """Return the texts of a picture; that it can be parsed is half of the test."""
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def titles(svg: str) -> str:
    return "\n".join(element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}title"))


@paddle.jit.to_static(input_spec=[InputSpec([None, 2], "float32", "x")])
def shrink(x):
    if x.sum() > 10:
        while x.sum() > 1:
            x = x * 0.5
    return x


# ---- what can be drawn -----------------------------------------------------------------------------------------------
def test_a_function_with_control_flow() -> None:
    svg = viz.to_svg(shrink)
    found = texts(svg)
    assert {"x", "cond", "then", "else", "while_loop", "body", "repeat if", "with 0.5", "output"} <= set(found)
    assert "float32[x_0, 2]" in found
    line = shrink.__wrapped__.__code__.co_firstlineno + 4
    assert f"test_drawing.py:{line} in shrink\n    x = x * 0.5" in titles(svg)


@pytest.mark.parametrize("name", programs.every())
def test_every_program_of_the_ir_tests(name: str) -> None:
    program = programs.every()[name]
    drawn = texts(viz.to_svg(program, details=True))
    for operation in program.block.walk():
        assert operation.name in drawn or operation.name == "call"


@pytest.mark.parametrize("seed", range(10))
def test_random_programs(seed: int) -> None:
    program = programs.random_program(seed)
    assert "result" in texts(viz.to_svg(program))
    assert {o.name for o in program.walk()} <= set(texts(viz.to_svg(program, details=True)))


def test_a_hand_built_program() -> None:
    paddle.enable_static()
    program = paddle.static.Program()
    with paddle.static.program_guard(program, paddle.static.Program()):
        x = paddle.static.data("pixels", [None, 3])
        paddle.tanh(x) + 1
    paddle.disable_static()
    assert {"pixels", "tanh", "add", "with 1", "result"} <= set(texts(viz.to_svg(program)))


def test_a_layer_shows_its_parts() -> None:
    layer = paddle.nn.Sequential(paddle.nn.Linear(3, 4), paddle.nn.ReLU())
    assert {"Sequential", "0: Linear", "weight [3, 4]", "1: ReLU"} <= set(texts(viz.to_svg(layer)))


def test_a_layer_with_a_declaration_shows_what_it_computes() -> None:
    found = texts(viz.to_svg(Chooser(), input_spec=[InputSpec([None, 4], name="x"), InputSpec([])]))
    assert {"matmul", "cond", "first.weight", "second.weight", "output"} <= set(found)


def test_a_layer_under_to_static() -> None:
    layer = paddle.jit.to_static(Chooser(), input_spec=[InputSpec([None, 4]), InputSpec([])])
    assert {"cond", "first.weight"} <= set(texts(viz.to_svg(layer)))


def test_a_saved_file_and_a_loaded_layer(tmp_path: Path) -> None:
    path = paddle.jit.save(refiner(), tmp_path / "m", input_spec=[X])
    for thing in (path, str(path), tmp_path / "m", paddle.jit.load(path)):
        found = texts(viz.to_svg(thing))
        assert {"forward", "halve", "while_loop", "linear.weight", "write last", "write calls"} <= set(found)


def test_a_plain_function_with_a_declaration() -> None:
    def double(x):
        return x * 2

    assert "mul" in texts(viz.to_svg(double, input_spec=[InputSpec([None])]))
    with pytest.raises(TypeError, match="not function; a plain function needs an input_spec, or to_static"):
        viz.to_svg(double)


def test_a_concrete_program_and_notebooks() -> None:
    concrete = shrink.concrete_program
    assert texts(viz.to_svg(concrete)) == texts(viz.to_svg(shrink))
    assert "while_loop" in texts(concrete._repr_svg_())
    assert "while_loop" in texts(concrete.main_program._repr_svg_())
    assert texts(paddle.static.Program()._repr_svg_()) == []


def test_calls_hold_the_function_and_recursion_ends() -> None:
    program = parse(
        "program main\n"
        "func main(%x: float32[]) {\n"
        "  %0: float32[] = call(%x) {function=\"f\", types=(!float32[],)}\n"
        "  return %0\n}\n"
        "func f(%a: float32[]) {\n"
        "  %0: float32[] = call(%a) {function=\"f\", types=(!float32[],)}\n"
        "  %1: float32[] = tanh(%0)\n"
        "  return %1\n}\n"
    )  # fmt: skip

    (panel,) = panels_of(program)
    (call,) = [node for node in panel.nodes if node.title == "call f"]
    assert call.folded
    assert [node.title for node in call.panels[0].nodes] == ["a", "call f", "tanh", "result"]
    assert "(recursive)" in call.panels[0].nodes[1].lines


def test_details_show_what_only_serves_shapes() -> None:
    assert "broadcast" not in texts(viz.to_svg(shrink))
    assert {"broadcast", "constant"} <= set(texts(viz.to_svg(shrink, details=True)))


def test_names_that_xml_cannot_hold() -> None:
    program = parse("program main\nfunc main(%x: float32[]) {\n  return %x\n}\n")
    program.block.arguments[0].name = "a<b>&\x00\ud800\"'"
    assert "a<b>&\ufffd\ufffd\"'" in texts(viz.to_svg(program))


def test_long_texts_are_cut() -> None:
    program = parse("program main\nfunc main(%x: float32[]) {\n  return %x\n}\n")
    program.block.arguments[0].name = "n" * 500
    assert max(map(len, texts(viz.to_svg(program)))) < 40


# ---- files -----------------------------------------------------------------------------------------------------------
def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    path = viz.draw(shrink, tmp_path / "shrink.html", title="a <title>")
    page = path.read_text(encoding="utf-8")
    assert not re.search(r"(src|href)\s*=|@import|url\((?!#)|https?://(?!www\.w3\.org/2000/svg)", page)
    assert "<title>a &lt;title&gt;</title>" in page
    assert "{{" not in page
    model = json.loads(re.search(r'id="model">(.*?)</script>', page, re.DOTALL)[1])
    drawn = re.search(r"<svg.*</svg>", page, re.DOTALL)[0]
    ids = {element.get("id") for element in ElementTree.fromstring(drawn).iter()}
    for number, panel in enumerate(model["panels"]):
        assert f"p{number}" in ids
        assert {f"n{panel['first'] + i}" for i in range(len(panel["nodes"]))} <= ids


def test_a_name_that_looks_like_markup_stays_text(tmp_path: Path) -> None:
    program = parse("program main\nfunc main(%x: float32[]) {\n  return %x\n}\n")
    program.block.arguments[0].name = "</script><script>alert(1)//{{model}}"
    page = viz.draw(program, tmp_path / "p.html").read_text(encoding="utf-8")
    assert page.count("<script") == 2
    assert "alert(1)" in page
    assert "</script><script>alert" not in page


def test_svg_and_unknown_endings(tmp_path: Path) -> None:
    assert "while_loop" in texts(viz.draw(shrink, tmp_path / "s.svg").read_text(encoding="utf-8"))
    with pytest.raises(ValueError, match=r"a picture is written to .html or .svg, not to 'p.png'"):
        viz.draw(shrink, tmp_path / "p.png")


@pytest.mark.parametrize("thing", [3, None, np.ones(3)])
def test_what_cannot_be_drawn(thing: Any) -> None:
    with pytest.raises(TypeError, match="the path of a saved file can be drawn, not"):
        viz.to_svg(thing)


def test_a_damaged_file(tmp_path: Path) -> None:
    path = paddle.jit.save(refiner(), tmp_path / "m", input_spec=[X])
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(FileFormatError, match=r"the tensors take \d+ bytes, the file has \d+"):
        viz.draw(path, tmp_path / "m.html")
    assert not (tmp_path / "m.html").exists()


def test_a_large_program_is_drawn_in_time() -> None:
    b = Builder()
    x = y = b.argument(TensorType(float32, (symbol("N"),)), "x")
    for _ in range(300):
        y = b.add(b.tanh(y), x)
    b.block.results = [y]
    assert texts(viz.to_svg(Program({"main": b.block}))).count("tanh") == 300
