"""What a saved file says of itself: data that nobody vouches for give one clear error each, and run nothing."""

import contextlib
import copy
import inspect
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dy2st as paddle
from dy2st.errors import FileFormatError
from dy2st.files import program_file
from dy2st.jit.guards.call_signature import ContainerNode, InputLeaf, StaticLeaf
from dy2st.jit.serialization.argument_schema import signature_from_json, signature_to_json, tree_from_json, tree_to_json
from dy2st.jit.serialization.output_schema import (
    MAX_DEPTH,
    NotSaveable,
    aval_from_json,
    aval_to_json,
    constant_from_json,
    constant_to_json,
)
from dy2st.runtime.tracer.values.abstract import Const, Items, ListOf, NewList, Number, OneOf, Unset
from tests.jit.saved_models import X, refiner


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Any]:
    """Return (metadata, program, tensors) of a file."""
    folder = tmp_path_factory.mktemp("saved")
    return program_file.read(paddle.jit.save(refiner(), folder / "m", input_spec=[X]))


def load(content: Any, folder: Path, change: Callable[[Any, Any], Any]) -> Any:
    metadata, program, tensors = copy.deepcopy(content[0]), copy.deepcopy(content[1]), content[2]
    change(metadata, program)
    program_file.write(folder / "m", program, tensors, metadata)
    return paddle.jit.load(folder / "m")


def first(metadata: Any) -> Any:
    return metadata["methods"]["forward"]["programs"][0]


def test_what_is_not_changed_is_loaded(content: Any, tmp_path: Path) -> None:
    assert load(content, tmp_path, lambda m, p: None)(paddle.ones([2, 3])).shape == [2, 3]


HOSTILE: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "kind": (lambda m, p: m.update(kind="model"), "the file holds a Program and no layer that jit.save wrote"),
    "more": (lambda m, p: m.update(more=1), "the metadata: the keys kind, training, state, methods are expected"),
    "training": (lambda m, p: m.update(training=1), "'training' and a method 'forward' are expected"),
    "no forward": (lambda m, p: m["methods"].pop("forward"), "'training' and a method 'forward' are expected"),
    "state": (lambda m, p: m.update(state={}), "the state: a list is expected, not {}"),
    "no name": (lambda m, p: m["state"].append({"kind": "buffer"}), "state None: each tensor has a dotted name"),
    "dots": (lambda m, p: m["state"][0].update(name="a.b."), "state 'a.b.': each tensor has a dotted name of its own"),
    "twice": (lambda m, p: m["state"].append(m["state"][0]), "each tensor has a dotted name of its own"),
    "same": (lambda m, p: m["state"].append({"name": "z", "same": "y"}), "'z' is said to be 'y', which is not before"),
    "same as data": (lambda m, p: m["state"].append({"name": "z", "same": {}}), "'z' is said to be {}, which is not"),
    "odd kind": (lambda m, p: m["state"][0].update(kind="code"), "'code' is no kind of state"),
    "no tensor": (lambda m, p: m["state"][0].update(tensor="w"), "the file has no tensor 'w'"),
    "inside": (
        lambda m, p: m["state"].append({**m["state"][0], "name": m["state"][0]["name"] + ".x"}),
        "cannot also be a part that holds",
    ),
    "dunder": (
        lambda m, p: m["state"].append({**m["state"][0], "name": "__class__", "kind": "attribute"}),
        "state '__class__' has a name that loaded layers have themselves",
    ),
    "method name": (
        lambda m, p: m["methods"].update({"a b": m["methods"]["forward"]}),
        "method 'a b': a method has a Python name",
    ),
    "method dunder": (
        lambda m, p: m["methods"].update(__init__=m["methods"]["forward"]),
        "method '__init__' has a name that loaded layers have themselves",
    ),
    "no program": (lambda m, p: m["methods"]["forward"].update(programs=[]), "method 'forward' has no Program"),
    "parameters": (lambda m, p: m["methods"]["forward"].update(parameters=3), "a list of parameters is expected"),
    "a parameter": (
        lambda m, p: m["methods"]["forward"].update(parameters=[["x"]]),
        r"a parameter is a name, a kind and a default, not \['x'\]",
    ),
    "parameter kind": (
        lambda m, p: m["methods"]["forward"].update(parameters=[["x", "code"]]),
        "'code' is no kind of parameter",
    ),
    "parameter name": (
        lambda m, p: m["methods"]["forward"].update(parameters=[["x y", "either"]]),
        "'x y' is not a valid parameter name",
    ),
    "parameters twice": (
        lambda m, p: m["methods"]["forward"].update(parameters=[["x", "either"], ["x", "either"]]),
        "duplicate parameter name: 'x'",
    ),
    "function": (lambda m, p: first(m).update(function="main"), "there is no function 'main' for mode"),
    "mode": (lambda m, p: first(m).update(mode="test"), "there is no function 'forward' for mode 'test'"),
    "inputs": (lambda m, p: first(m).update(inputs=99), "99 is no number of inputs"),
    "argument": (lambda m, p: first(m)["arguments"].append(["z", {"input": 0}]), "is no argument"),
    "argument data": (lambda m, p: first(m)["arguments"].append([{}, {"input": 0}]), "is no argument"),
    "tree": (lambda m, p: first(m).update(arguments=[["x", {"input": 7}]]), "does not say what an argument is made of"),
    "reads": (lambda m, p: first(m)["state"].append("nothing"), "'nothing' is not in the state"),
    "random": (lambda m, p: first(m)["state"].append({"random": "os"}), "is not in the state"),
    "too few": (lambda m, p: first(m)["state"].pop(), "tensors of state for"),
    "other state": (lambda m, p: first(m)["state"].reverse(), "the Program reads|is no"),
    "output": (lambda m, p: first(m).update(output={"const": 1}), "output and writes do not fit the results"),
    "seeded": (lambda m, p: first(m).update(seeded="0"), "a list is expected, not '0'"),
    "seeded text": (lambda m, p: first(m).update(seeded=["0"]), "are no numbers of results"),
    "seeded far": (lambda m, p: first(m).update(seeded=[9]), "a result through which gradients are said to flow"),
    "write": (lambda m, p: first(m)["writes"].append(3), "a write is a target and a template, not 3"),
    "write where": (
        lambda m, p: first(m)["writes"].append([{"file": "/etc/passwd"}, {"const": 1}]),
        "nothing can be written to",
    ),
    "write dunder": (
        lambda m, p: first(m)["writes"].append([{"attribute": "forward"}, {"const": 1}]),
        "attribute 'forward' has a name that loaded layers have themselves",
    ),
    "write elements": (
        lambda m, p: first(m)["writes"].append([{"elements": "nothing"}, {"const": 1}]),
        "nothing can be written to",
    ),
    "host call": (
        lambda m, p: p["functions"]["forward"]["operations"][0].update(op="host_call"),
        "is no op that may stand in a file",
    ),
    "depth": (lambda m, p: first(m).update(output=nested(150)), "nested more than 100 deep"),
}


def nested(depth: int) -> Any:
    made: Any = {"const": 1}
    for _ in range(depth):
        made = {"list": [made]}
    return made


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_metadata(content: Any, tmp_path: Path, name: str) -> None:
    change, message = HOSTILE[name]
    with pytest.raises(FileFormatError, match=message) as caught:
        load(content, tmp_path, change)
    assert str(caught.value).startswith(f"{tmp_path / 'm.dy2st'}: ")
    assert "\n" not in str(caught.value)


ANYTHING: list[Any] = [
    None, True, -1, 2**70, 0.5, "", "x", "forward", "?draw", [], {}, [None], [["x", "either"]], {"input": 0},
    {"const": 1}, {"tensor": ["float32[N]", False]}, {"random": "seed"}, {"list": [{"number": "int"}]},
]  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_anything_in_any_place_of_the_metadata(content: Any, tmp_path: Path, seed: int) -> None:
    """Any part of the metadata may be anything: the file loads, or one FileFormatError says why not."""
    rng = random.Random(seed)

    def change(metadata: Any, program: Any) -> None:
        at: Any = metadata
        while at:
            key = rng.choice(list(at) if isinstance(at, dict) else range(len(at)))
            if not isinstance(at[key], (dict, list)) or rng.random() < 0.3:
                at[key] = rng.choice(ANYTHING)
                return
            at = at[key]

    with contextlib.suppress(FileFormatError):
        assert load(content, tmp_path, change).state_dict()


# ---- templates and constants -----------------------------------------------------------------------------------------
F = aval_from_json({"tensor": ["float32[N, 4]", False]}, "a test")


@pytest.mark.parametrize(
    "template",
    [
        F, Number("int"), Const(None), Const("text"), Const(2.5), Const(float("-inf")), Const(paddle.int32),
        Items(list, (F, Const(1))), Items(tuple, ()), Items(dict, (F, F), ("a", 3)), NewList(Items(list, (F,))),
        ListOf(F), Unset("y"), OneOf((Unset(""), F, Const(None))),
    ],
)  # fmt: skip
def test_templates_come_back(template: Any) -> None:
    assert aval_from_json(aval_to_json(template, "it"), "it") == template


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (3, "an object with one key is expected, not 3"),
        ({"code": "x"}, "'code' is no kind of template"),
        ({"tensor": "float32[2]"}, "a tensor is a type and whether it stops gradients"),
        ({"tensor": ["float32[", True]}, "here: "),
        ({"tensor": ["int", True]}, "'int' is no type of a tensor"),
        ({"number": "complex"}, "'complex' is no kind of number"),
        ({"const": [1]}, r"\[1\] is no constant"),
        ({"float": "1.0"}, "'1.0' is not nan, inf or -inf"),
        ({"dtype": "float8"}, "'float8' is no dtype"),
        ({"list": 3}, "a list is expected, not 3"),
        ({"dict": 3}, "a dict is a list of pairs of a key and a template"),
        ({"dict": [["a", {"const": 1}], ["a", {"const": 1}]]}, "a dict has a key twice"),
        ({"unset": 3}, "a name is expected, not 3"),
        ({"one_of": [{"const": 1}, {"const": 2}]}, "the first of several alternatives is 'unset'"),
    ],
)
def test_templates_that_are_none(data: Any, message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        aval_from_json(data, "here")


def test_types_nested_too_deep() -> None:
    with pytest.raises(FileFormatError, match=f"nested more than {MAX_DEPTH} deep"):
        aval_from_json(nested(MAX_DEPTH + 1), "here")


@pytest.mark.parametrize("x", [None, True, 3, "s", 2.5, float("inf"), [1, (2, None)], {"a": [1]}, paddle.float64])
def test_constants_come_back(x: Any) -> None:
    found = constant_from_json(constant_to_json(x, "it"), "it")
    assert (found, type(found)) == (x, type(x))


def test_constants_that_are_none() -> None:
    with pytest.raises(FileFormatError, match="a constant is expected"):
        constant_from_json({"number": "int"}, "here")
    with pytest.raises(NotSaveable, match="the default holds an object of type object, which cannot be saved"):
        constant_to_json(object(), "the default")
    with pytest.raises(NotSaveable, match="the default has a dict with a key of type bytes; only strings, numbers"):
        constant_to_json({b"a": 2}, "the default")


# ---- arguments -------------------------------------------------------------------------------------------------------
def test_signatures_come_back() -> None:
    def f(a, /, b, c=3, *args, d, e=(1, None), **rest): ...

    signature = inspect.signature(f)
    assert signature_from_json(signature_to_json(signature), "f") == signature


def test_a_default_that_no_file_holds_must_be_given() -> None:
    def f(a=print): ...

    assert str(signature_from_json(signature_to_json(inspect.signature(f)), "f")) == "(a)"


def test_trees_come_back() -> None:
    tree = ContainerNode(
        list,
        [InputLeaf(0), ContainerNode(dict, [InputLeaf(1), StaticLeaf("s")], ["a", 3]), ContainerNode(tuple, [], None)],
        None,
    )
    assert tree_from_json(tree_to_json(tree, "x"), 2, "x") == tree
