"""Objects that a forward returns, keys of any kind and names of any form: a file holds them, and what it is in."""

from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

import dy2st as paddle
from dy2st.errors import FileFormatError
from dy2st.jit.serialization.output_schema import aval_from_json
from tests.jit.saved_models import X, same


class Pair:
    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second


class Output(OrderedDict):
    def __getattr__(self, name):
        return self[name]


class Rows(list):
    pass


class Net(paddle.nn.Layer):
    def __init__(self, make):
        super().__init__()
        self.fc, self.make = paddle.nn.Linear(3, 4), make

    def forward(self, x):
        return self.make(self.fc(x))


class Evaluated(paddle.nn.Layer):
    """Is traceable for evaluation only."""

    def __init__(self):
        super().__init__()
        self.fc = paddle.nn.Linear(3, 4)

    def forward(self, x):
        y = self.fc(x)
        return (y, y.numpy()) if self.training else y


def saved(layer: paddle.nn.Layer, folder: Path) -> Any:
    paddle.jit.save(layer, folder / "m", input_spec=[X])
    return paddle.jit.load(folder / "m")


def made_plain(y):
    return Pair(y, {"twice": y * 2})


def made_dict(y):
    found = Output(first=y)
    found["second"] = {"twice": y * 2}
    return found


def made_in_branch(y):
    return Pair(y, {"twice": y * 2}) if y.shape[0] > 1 else None


@pytest.mark.parametrize("make", [made_plain, made_dict, made_in_branch])
def test_objects_come_back_with_their_attributes(tmp_path: Path, make: Any) -> None:
    layer = Net(make)
    loaded = saved(layer, tmp_path)
    for rows in (2, 5):
        x = paddle.randn([rows, 3])
        for run in (loaded, paddle.jit.to_static(lambda x, loaded=loaded: loaded(x), full_graph=True)):
            found, want = run(x), layer(x)
            same(found.first, want.first)
            same(found.second["twice"], want.second["twice"])
            found.second["twice"].sum().backward()
            got = loaded.state_dict()["fc.weight"].grad
            want.second["twice"].sum().backward()
            same(got, layer.fc.weight.grad)
            for t in (*loaded.parameters(), *layer.parameters()):
                t.clear_gradient()


def test_what_a_dict_of_a_class_is(tmp_path: Path) -> None:
    found = saved(Net(made_dict), tmp_path)(paddle.ones([2, 3]))
    assert list(found) == ["first", "second"]
    same(found[0], found["first"])
    with pytest.raises(AttributeError, match="no attribute or item 'third' was saved"):
        _ = found.third
    with pytest.raises(KeyError):
        found["third"]


def test_a_list_of_a_class(tmp_path: Path) -> None:
    layer = Net(lambda y: Rows([y, y + 1]))
    x = paddle.ones([2, 3])
    found = saved(layer, tmp_path)(x)
    assert len(found) == 2
    same(found[1], layer(x)[1])


def test_a_file_of_a_loaded_layer_has_the_objects(tmp_path: Path) -> None:
    layer = Net(made_plain)
    paddle.jit.save(saved(layer, tmp_path), tmp_path / "again")
    x = paddle.ones([2, 3])
    same(paddle.jit.load(tmp_path / "again")(x).first, layer(x).first)


def test_keys_of_dicts(tmp_path: Path) -> None:
    layer = Net(lambda y: {0: y, (1, "a", (None,)): y * 2, 2.5: y + 1, None: y, True: y * 3})
    x = paddle.ones([2, 3])
    found, want = saved(layer, tmp_path)(x), layer(x)
    assert list(found) == list(want)
    for key, y in want.items():
        same(found[key], y)


def test_keys_of_arguments(tmp_path: Path) -> None:
    paddle.jit.save(lambda d: d[1, 2] * d[0.5], tmp_path / "m", input_spec=[{(1, 2): X, 0.5: X}])
    x = paddle.ones([2, 3])
    same(paddle.jit.load(tmp_path / "m")({(1, 2): x, 0.5: x * 3}), x * 3)


@pytest.mark.parametrize("training", [True, False])
def test_one_mode_alone_is_saved(tmp_path: Path, training: bool) -> None:
    layer = Evaluated()
    layer.train(training)
    with pytest.warns(UserWarning, match="`Evaluated.forward` is saved for evaluation only: traced for training it"):
        loaded = saved(layer, tmp_path)
    assert layer.training is training
    layer.eval()
    x = paddle.ones([2, 3])
    same(loaded(x), layer(x))
    assert loaded.program().entry


def test_a_layer_with_a_dot_at_the_end_of_its_name(tmp_path: Path) -> None:
    class Dotted(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.add_sublayer("blocks.0.", paddle.nn.Linear(3, 3))

        def forward(self, x):
            for layer in self.sublayers():
                x = layer(x)
            return x

    layer = Dotted()
    loaded = saved(layer, tmp_path)
    x = paddle.ones([2, 3])
    same(loaded(x), layer(x))
    assert list(loaded.state_dict()) == list(layer.state_dict())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"object": 3}, "an object is a kind and its attributes"),
        ({"object": ["plain", 3]}, "the attributes of an object are pairs of a name and a template"),
        ({"object": ["type", []]}, "'type' is no kind of object"),
        ({"object": [["plain"], []]}, "is no kind of object"),
        ({"object": ["plain", [["__class__", {"const": 1}]]]}, "is no kind of object, or an attribute has no name"),
        ({"object": ["plain", [["a", {"const": 1}], ["a", {"const": 1}]]]}, "or an attribute has no name of its own"),
        ({"object": ["plain", [[["a"], {"const": 1}]]]}, "an attribute has no name of its own"),
        ({"object": ["dict", [["a", {"const": 1}]]]}, "the items of an object are none of a dict"),
        ({"object": ["list", [["its items", {"const": 1}]]]}, "the items of an object are none of a list"),
        ({"object": ["plain", [["its items", {"new_list": {"list": []}}]]]}, "the items of an object are none of a pl"),
        ({"dict": [[{}, {"const": 1}]]}, "{} is no key of a dict"),
        ({"dict": [[[1, []], {"const": 1}], [[1, []], {"const": 1}]]}, "a dict has a key twice"),
    ],
)
def test_templates_that_are_none(data: Any, message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        aval_from_json(data, "here")
