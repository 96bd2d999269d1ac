"""Hand-built Programs in files: for inference, and values alone."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import FileFormatError
from dy2st.files import program_file
from dy2st.static import Executor, Program, Scope, program_guard, scope_guard

PIXELS = np.linspace(-1, 1, 8, dtype="float32").reshape(2, 4)


@pytest.fixture(autouse=True)
def static_mode() -> Iterator[None]:
    paddle.enable_static()
    with scope_guard(Scope()):
        yield
    paddle.disable_static()


class Net:
    """A classifier with dropout and a loss, its startup program run."""

    def __init__(self) -> None:
        self.program, self.startup = Program(), Program()
        with program_guard(self.program, self.startup):
            self.x = paddle.static.data("pixels", [None, 4])
            self.label = paddle.static.data("label", [None, 3])
            hidden = paddle.nn.functional.dropout(paddle.static.nn.fc(self.x, 5), 0.5)
            self.out = paddle.static.nn.fc(hidden, 3)
            self.loss = ((self.out - self.label) ** 2).mean()
            paddle.optimizer.SGD(0.1).minimize(self.loss)
        Executor().run(self.startup)

    def infer(self) -> np.ndarray:
        feed = {"pixels": PIXELS, "label": np.zeros((2, 3), "float32")}
        return Executor().run(self.program.clone(for_test=True), feed=feed, fetch_list=[self.out])[0]

    def save(self, path: Path) -> Path:
        return paddle.static.save_inference_model(path, [self.x], [self.out], Executor(), program=self.program)


@pytest.mark.proves("static.save_inference_model static.load_inference_model static.io.load_inference_model")
def test_a_model_for_inference_in_another_scope(tmp_path: Path) -> None:
    net = Net()
    want = net.infer()
    assert net.save(tmp_path / "net") == tmp_path / "net.dy2st"
    with scope_guard(Scope()):
        program, feeds, fetches = paddle.static.load_inference_model(tmp_path / "net", Executor())
        assert feeds == ["pixels"]
        (found,) = Executor().run(program, feed={"pixels": PIXELS}, fetch_list=fetches)
        (three,) = Executor().run(program, feed={"pixels": np.ones((3, 4), "float32")}, fetch_list=[fetches[0].name])
    np.testing.assert_array_equal(found, want)
    assert three.shape == (3, 3)
    assert len(program.all_parameters()) == 4
    assert not any("random" in operation.type for operation in program.ops)


def test_saved_again(tmp_path: Path) -> None:
    net = Net()
    net.save(tmp_path / "net")
    program, _, fetches = paddle.static.load_inference_model(tmp_path / "net", Executor())
    again = (program.global_block().var("pixels"), fetches)
    paddle.static.save_inference_model(tmp_path / "again", *again, Executor(), program=program)
    program, feeds, fetches = paddle.static.load_inference_model(tmp_path / "again", Executor())
    (found,) = Executor().run(program, feed={feeds[0]: PIXELS}, fetch_list=fetches)
    np.testing.assert_array_equal(found, net.infer())


def test_random_numbers_of_a_model(tmp_path: Path) -> None:
    program = Program()
    with program_guard(program, Program()):
        x = paddle.static.data("x", [4])
        noisy = x + paddle.rand([4])
    paddle.static.save_inference_model(tmp_path / "n", x, noisy, program=program)
    program, _, fetches = paddle.static.load_inference_model(tmp_path / "n")
    runs = []
    for _ in range(2):
        paddle.seed(5)
        runs.append([Executor().run(program, feed={"x": np.zeros(4, "float32")}, fetch_list=fetches)[0]
                     for _ in range(2)])  # fmt: skip
    np.testing.assert_array_equal(runs[0], runs[1])
    assert (runs[0][0] != runs[0][1]).any()


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    net = Net()
    save: Any = paddle.static.save_inference_model
    with pytest.raises(ValueError, match="depend on the data 'label', which feed_vars does not name"):
        save(tmp_path / "n", [net.x], [net.loss], program=net.program)
    with pytest.raises(ValueError, match=r"feed_vars names 'add_.*', which is no data of the Program"):
        save(tmp_path / "n", [net.x, net.out], [net.out], program=net.program)
    with pytest.raises(TypeError, match="fetch_vars takes variables of a hand-built Program, not str"):
        save(tmp_path / "n", [net.x], ["out"], program=net.program)
    with pytest.raises(TypeError, match=r"save_inference_model\(\) got an unexpected keyword argument 'format'"):
        save(tmp_path / "n", [net.x], [net.out], program=net.program, format=1)
    with scope_guard(Scope()), pytest.raises(RuntimeError, match="run the startup program first"):
        net.save(tmp_path / "n")
    assert not list(tmp_path.iterdir())


HOSTILE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "kind": (lambda m: m.update(kind="layer"), "the file was not written by save_inference_model"),
    "keys": (lambda m: m.update(more=1), "the keys kind, arguments, results are expected"),
    "count": (lambda m: m["arguments"].pop(), "do not fit the arguments and results of the Program"),
    "role": (lambda m: m["arguments"][0].__setitem__(0, "code"), "is no argument"),
    "twice": (lambda m: m["arguments"][1].__setitem__(1, "pixels"), "two arguments are named 'pixels'"),
    "absent": (lambda m: m["arguments"][1].__setitem__(1, "w"), "the Program reads 'w' as"),
    "random": (lambda m: m["arguments"][0].__setitem__(0, "random"), "'pixels' is no number of the generator"),
    "draw": (lambda m: m["results"].pop(), "the last result of the Program is no draw number"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(tmp_path: Path, name: str) -> None:
    metadata, program, tensors = program_file.read(Net().save(tmp_path / "n"))
    change, message = HOSTILE[name]
    metadata = copy.deepcopy(metadata)
    change(metadata)
    program_file.write(tmp_path / "n", program, tensors, metadata)
    with scope_guard(Scope()):
        with pytest.raises(FileFormatError, match=message):
            paddle.static.load_inference_model(tmp_path / "n")
        assert not paddle.static.global_scope().local_var_names()


def test_feeds_are_tensors_and_the_program_is_one_function(tmp_path: Path) -> None:
    metadata, program, tensors = program_file.read(Net().save(tmp_path / "n"))
    scalar = copy.deepcopy(program)
    scalar["functions"]["main"] = {"arguments": [["n", "int"]], "operations": [], "results": []}
    program_file.write(tmp_path / "n", scalar, {}, {"kind": "inference", "arguments": [["feed", "n"]], "results": []})
    with pytest.raises(FileFormatError, match="the data 'n' are no tensor"):
        paddle.static.load_inference_model(tmp_path / "n")
    program["functions"]["other"] = program["functions"]["main"]
    program_file.write(tmp_path / "n", program, tensors, metadata)
    with pytest.raises(FileFormatError, match="a Program for inference has one function"):
        paddle.static.load_inference_model(tmp_path / "n")


# ---- values alone ------------------------------------------------------------------------------------------------
@pytest.mark.proves("static.save static.load static.load_program_state")
def test_values_alone(tmp_path: Path) -> None:
    net = Net()
    want = net.infer()
    paddle.static.save(net.program, tmp_path / "net")
    weight = net.program.all_parameters()[0]
    for given in (None, [weight]):
        weight.set_value(np.zeros(weight.shape, "float32"))
        assert (net.infer() != want).any()
        paddle.static.load(net.program, tmp_path / "net", Executor(), given)
        np.testing.assert_array_equal(net.infer(), want)
    assert list(paddle.static.load_program_state(tmp_path / "net", [weight])) == [weight.name]
    with pytest.raises(ValueError, match=r"net\.pdparams has no values of pixels"):
        paddle.static.load_program_state(tmp_path / "net", ["pixels"])
    with pytest.raises(ValueError, match=r"net\.pdparams has no value for the variable pixels"):
        paddle.static.load(net.program, tmp_path / "net", var_list=[net.x])


@pytest.mark.proves("static.set_program_state")
def test_values_that_do_not_fit(tmp_path: Path) -> None:
    net = Net()
    want = net.infer()
    first, second, *_ = net.program.all_parameters()
    with pytest.raises(ValueError, match=rf"the variable {second.name} is float32\[5\], the value for it float32\[9\]"):
        paddle.static.set_program_state(net.program, {first.name: np.zeros((4, 5), "float32"),
                                                      second.name: np.zeros(9, "float32")})  # fmt: skip
    np.testing.assert_array_equal(net.infer(), want)


def test_a_file_of_something_else(tmp_path: Path) -> None:
    paddle.save([1, 2], tmp_path / "n.pdparams")
    with pytest.raises(FileFormatError, match="the file holds no values of a Program by name"):
        paddle.static.load_program_state(tmp_path / "n")


def test_unknown_options(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"save\(\) got an unexpected keyword argument 'mode'"):
        paddle.static.save(Program(), tmp_path / "n", mode=1)
    with pytest.raises(TypeError, match=r"load_inference_model\(\) got an unexpected keyword argument 'mode'"):
        paddle.static.load_inference_model(tmp_path / "n", mode=1)
