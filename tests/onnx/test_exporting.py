"""`paddle.onnx.export`: what models look like, that onnxruntime gives what we give, and what is refused."""

import re

import numpy as np
import pytest

import dy2st as paddle
from dy2st import cli
from dy2st.errors import MissingExtraError
from dy2st.onnx import NotExportable, export
from dy2st.onnx import package as loaded_package
from dy2st.static import InputSpec
from tests.onnx.running import onnx, session

RNG = np.random.default_rng(0)


def arrays(*shapes):
    return [RNG.normal(size=shape).astype(np.float32) for shape in shapes]


def listed(x):
    """The leaves of what a function gives."""
    if isinstance(x, (list, tuple)):
        return [leaf for item in x for leaf in listed(item)]
    return [x.numpy() if isinstance(x, paddle.Tensor) else np.asarray(x)]


def same_in_onnxruntime(tmp_path, model, specs, *calls, rtol=1e-5):
    """Export, and compare calls with arrays of several shapes."""
    path = export(model, tmp_path / "m", specs)
    opened = session(str(path))
    names = [i.name for i in opened.get_inputs()]
    for call in calls:
        found = opened.run(None, dict(zip(names, call, strict=True)))
        wanted = listed(model(*(paddle.to_tensor(x) for x in call)))
        flat = [leaf for x in found for leaf in (x if isinstance(x, list) else [x])]
        for a, b in zip(flat, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)
            assert a.shape == b.shape
    return onnx.load(path)


def test_branches_and_loops(tmp_path):
    def f(x):
        total = paddle.zeros([3])
        turns = 0
        while total.sum() < 10:
            total = total + paddle.exp(x[0])
            turns += 1
            if turns > 20:
                break
        for i in range(x.shape[0]):
            if x[i].sum() > 0:
                total = total + x[i] * i
            else:
                total = total - 1
        return total, turns

    f = paddle.jit.to_static(f)
    model = same_in_onnxruntime(tmp_path, f, [InputSpec([None, 3], name="x")], *zip(arrays((1, 3), (4, 3), (7, 3))))
    kinds = {node.op_type for node in model.graph.node}
    assert "Loop" in kinds
    assert model.opset_import[0].version == 21
    assert model.ir_version == 10


def test_lists_become_sequences(tmp_path):
    def f(x, n):
        items = []
        for i in range(n):
            items.append(x * i)
        if x.sum() > 0 and n > 2:
            items.pop(0)
            items[0] = x
        return paddle.stack(items), len(items)

    f = paddle.jit.to_static(f)
    (x,) = arrays((2, 3))
    specs = [InputSpec([None, None]), InputSpec([], "int64")]
    calls = [(x, np.array(2)), (abs(x), np.array(4)), (-abs(x), np.array(3))]
    same_in_onnxruntime(tmp_path, f, specs, *calls)


def test_a_layer_has_its_parameters_as_initializers_and_its_symbols_by_name(tmp_path):
    layer = paddle.nn.Sequential(
        paddle.nn.Conv2D(3, 4, 3, stride=2, padding=1), paddle.nn.BatchNorm2D(4), paddle.nn.GELU(),
        paddle.nn.AdaptiveAvgPool2D(1), paddle.nn.Flatten(), paddle.nn.LayerNorm(4), paddle.nn.Linear(4, 2),
        paddle.nn.Softmax(),
    )  # fmt: skip
    layer.eval()
    calls = zip(arrays((1, 3, 8, 8), (3, 3, 11, 6)))
    model = same_in_onnxruntime(tmp_path, layer, [InputSpec([None, 3, None, None], name="image")], *calls)
    assert {"0.weight", "5.bias", "6.weight"} <= {i.name for i in model.graph.initializer}
    (given,) = model.graph.input
    assert given.name == "image"
    extents = [d.dim_param or d.dim_value for d in given.type.tensor_type.shape.dim]
    assert extents == ["input_0", 3, "input_2", "input_3"]


def test_what_a_call_writes_is_an_input_and_an_output(tmp_path):
    layer = paddle.nn.BatchNorm1D(2)
    path = export(layer, tmp_path / "norm", [InputSpec([None, 2], name="x")])
    opened = session(str(path))
    x, y = arrays((5, 2), (4, 2))
    names = [o.name for o in opened.get_outputs()]
    first = dict(zip(names, opened.run(None, {"x": x}), strict=True))
    again = {name.removeprefix("next."): value for name, value in first.items() if name.startswith("next.")}
    assert set(again) == {"_mean", "_variance"}
    second = dict(zip(names, opened.run(None, {"x": y, **again}), strict=True))
    for given, found in ((x, first), (y, second)):
        np.testing.assert_allclose(found["output"], layer(paddle.to_tensor(given)).numpy(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found["next._mean"], layer._mean.numpy(), rtol=1e-5)


def test_nodes_have_the_lines_that_they_come_from(tmp_path):
    def f(x):
        return paddle.tanh(x)

    model = onnx.load(export(f, tmp_path / "m", [InputSpec([None])]))
    (node,) = [n for n in model.graph.node if n.op_type == "Tanh"]
    (source,) = [p.value for p in node.metadata_props if p.key == "source"]
    assert re.search(r"test_exporting\.py:\d+$", source)


def test_all_that_has_no_form_is_named_with_its_line(tmp_path):
    def f(x):
        print(x)
        y = paddle.lgamma(x)
        return y + paddle.rand([2])

    with pytest.raises(NotExportable) as raised:
        export(f, tmp_path / "m", [InputSpec([2])])
    text = str(raised.value)
    for name in ("print", "lgamma", "random_uniform"):
        assert re.search(rf"^  {name} at .*test_exporting\.py:\d+: \w", text, re.MULTILINE), text
    assert not list(tmp_path.iterdir())


def test_what_reads_a_value_without_a_form_is_not_named_again(tmp_path):
    def f(x):
        rows = []
        for i in range(x.shape[0]):
            row = []
            for _ in range(i):
                row.append(x)
            rows.append(row)
        return rows[1][0] + x

    with pytest.raises(NotExportable, match="ONNX has no sequence of") as raised:
        export(f, tmp_path / "m", [InputSpec([None])])
    assert {name for name, _, _ in raised.value.operations} <= {"list_new", "counted_while", "list_append"}


def test_recursion_has_no_form(tmp_path):
    @paddle.jit.to_static
    def down(x):
        if x.sum() > 1:
            return down(x / 2)
        return x

    with pytest.raises(NotExportable, match="no recursion"):
        export(down, tmp_path / "m", [InputSpec([2])])


def test_state_can_stand_beside_the_model(tmp_path):
    layer = paddle.nn.Linear(40, 30)
    path = export(layer, tmp_path / "linear", [InputSpec([None, 40], name="x")], external_data=True)
    assert (tmp_path / "linear.onnx.data").stat().st_size >= 40 * 30 * 4
    assert path.stat().st_size < 2000
    (x,) = arrays((2, 40))
    (found,) = session(str(path)).run(None, {"x": x})
    np.testing.assert_allclose(found, layer(paddle.to_tensor(x)).numpy(), rtol=1e-5, atol=1e-6)


def test_the_command_writes_a_saved_model(tmp_path, capsys):
    paddle.jit.save(paddle.nn.Linear(3, 2), str(tmp_path / "model"), [InputSpec([None, 3])])
    assert cli.main(["onnx", str(tmp_path / "model.dy2st"), "-o", str(tmp_path / "out.onnx")]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "out.onnx")
    assert session(str(tmp_path / "out.onnx")).get_outputs()[0].name == "output"


def test_what_to_install_is_said(tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(loaded_package, "import_module", missing)
    with pytest.raises(MissingExtraError, match=re.escape("pip install 'dy2st[onnx]'")):
        export(paddle.nn.ReLU(), tmp_path / "m", [InputSpec([2])])


def test_another_opset_is_refused(tmp_path):
    with pytest.raises(ValueError, match="models are written for opset 21, not 9"):
        export(paddle.nn.ReLU(), tmp_path / "m", [InputSpec([2])], opset_version=9)


def test_one_model_is_one_program(tmp_path):
    @paddle.jit.to_static
    def f(x):
        return x * 2

    f(paddle.ones([2]))
    f(paddle.ones([2, 2]))
    with pytest.raises(ValueError, match="forward has 2 Programs in this mode"):
        export(f, tmp_path / "m")
