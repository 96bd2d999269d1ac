"""`paddle.onnx.load`: what models compute, that they train and save, and that files of strangers do no harm."""

import os
import re

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import FileFormatError
from dy2st.onnx import export, load
from dy2st.static import InputSpec
from tests.onnx.running import onnx

helper = onnx.helper
F32, I64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def net():
    paddle.seed(3)
    return paddle.nn.Sequential(
        paddle.nn.Conv2D(1, 3, 3, padding=1), paddle.nn.ReLU(), paddle.nn.MaxPool2D(2), paddle.nn.Flatten(),
        paddle.nn.Linear(12, 4), paddle.nn.GELU(), paddle.nn.Linear(4, 2),
    )  # fmt: skip


def written(path, nodes, inputs, outputs, opset=21, initializers=()):
    """A model of these nodes in a file."""
    infos = [[helper.make_tensor_value_info(*one) for one in some] for some in (inputs, outputs)]
    graph = helper.make_graph(nodes, "g", *infos, initializer=list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def test_a_model_that_we_wrote_gives_the_same_as_the_layer(tmp_path):
    layer = net()
    x = paddle.randn([5, 1, 4, 4])
    path = export(layer, tmp_path / "net", [InputSpec([None, 1, 4, 4], name="x")])
    again = load(path)
    np.testing.assert_allclose(again(x).numpy(), layer(x).numpy(), rtol=1e-5, atol=1e-6)
    assert {name for name, _ in again.named_parameters()} == {name for name, _ in layer.named_parameters()}
    assert again(x[:2]).shape == [2, 2]
    assert len(again.forward.program_cache) == 1  # one Program for both sizes


def test_a_loaded_model_trains_and_saves(tmp_path):
    again = load(export(net(), tmp_path / "net", [InputSpec([None, 1, 4, 4], name="x")]))
    x, y = paddle.randn([8, 1, 4, 4]), paddle.to_tensor(np.arange(8) % 2)
    optimizer = paddle.optimizer.Adam(learning_rate=0.01, parameters=again.parameters())
    losses = []
    for _ in range(20):
        loss = paddle.nn.functional.cross_entropy(again(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    assert losses[-1] < 0.7 * losses[0]
    paddle.jit.save(again, str(tmp_path / "saved"))
    saved = paddle.jit.load(str(tmp_path / "saved"))
    np.testing.assert_allclose(saved(x).numpy(), again(x).numpy(), rtol=1e-6)
    third = load(export(again, tmp_path / "back"))
    np.testing.assert_allclose(third(x).numpy(), again(x).numpy(), rtol=1e-5, atol=1e-6)


def test_branches_and_loops_become_one_program(tmp_path):
    def f(x):
        total = paddle.zeros([2])
        while total.sum() < 8:
            total = total + paddle.exp(x[0])
        if total.mean() > 5:
            total = total * 2
        return total

    again = load(export(paddle.jit.to_static(f), tmp_path / "f", [InputSpec([None, 2], name="x")]))
    for row in ([0.1, 0.3], [1.5, 0.2], [0.0, 1.0]):
        x = paddle.to_tensor([row])
        np.testing.assert_allclose(again(x).numpy(), f(x).numpy(), rtol=1e-5)
    ops = {operation.name for operation in again.forward.concrete_program.main_program.walk()}
    assert {"while_loop", "cond"} <= ops


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 17, 21, 24])
def test_old_and_new_opsets(tmp_path, opset):
    if opset < 13:
        nodes = [
            helper.make_node("Unsqueeze", ["x"], ["u"], axes=[0]),
            helper.make_node("ReduceSum", ["u"], ["s"], axes=[2], keepdims=0),
        ]
        more = []
    else:
        nodes = [helper.make_node("Unsqueeze", ["x", "a"], ["u"]),
                 helper.make_node("ReduceSum", ["u", "b"], ["s"], keepdims=0)]  # fmt: skip
        more = [helper.make_tensor("a", I64, [1], [0]), helper.make_tensor("b", I64, [1], [2])]
    nodes.append(helper.make_node("Softmax", ["s"], ["y"], axis=1))
    layer = load(written(tmp_path / "m.onnx", nodes, [("x", F32, ["N", 3])], [("y", F32, [1, "N"])], opset, more))
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    wanted = np.exp(x.sum(1)) / np.exp(x.sum(1)).sum()
    np.testing.assert_allclose(layer(paddle.to_tensor(x)).numpy(), wanted[None], rtol=1e-5)


def external(location, offset="0"):
    tensor = onnx.TensorProto(name="w", data_type=F32, dims=[4], data_location=onnx.TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", offset), ("length", "16")):
        tensor.external_data.add(key=key, value=value)
    return tensor


def with_weight(folder, tensor):
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    return written(folder / "m.onnx", nodes, [("x", F32, [4])], [("y", F32, [4])], 21, [tensor])


def test_weights_beside_the_model(tmp_path):
    np.arange(8, dtype=np.float32).tofile(tmp_path / "weights")
    layer = load(with_weight(tmp_path, external("weights", "16")))
    assert layer(paddle.zeros([4])).tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize("location", ["../weights", "/etc/hostname", "link", "", "folder", "weights\0"])
def test_nothing_outside_of_the_folder_is_read(tmp_path, location):
    np.arange(8, dtype=np.float32).tofile(tmp_path / "weights")
    inside = tmp_path / "model"
    (inside / "folder").mkdir(parents=True)
    os.symlink(tmp_path / "weights", inside / "link")
    with pytest.raises(FileFormatError, match="is not beside the model"):
        load(with_weight(inside, external(location)))


@pytest.mark.parametrize("offset", ["20", "-1", "1e3", "9" * 30])
def test_a_weight_ends_inside_of_its_file(tmp_path, offset):
    np.arange(8, dtype=np.float32).tofile(tmp_path / "weights")
    with pytest.raises(FileFormatError, match=r"over the end of weights|is no place in a file"):
        load(with_weight(tmp_path, external("weights", offset)))


def test_a_tensor_that_is_larger_than_its_data_is_refused(tmp_path):
    tensor = onnx.TensorProto(name="w", data_type=F32, dims=[1 << 20, 1 << 20], raw_data=b"1234")
    with pytest.raises(FileFormatError, match="has 1,099,511,627,776 elements"):
        load(with_weight(tmp_path, tensor))
    tensor = onnx.TensorProto(name="w", data_type=F32, dims=[4], raw_data=b"1234")
    with pytest.raises(FileFormatError, match="cannot be read"):
        load(with_weight(tmp_path, tensor))


def test_graphs_inside_of_graphs_end(tmp_path):
    graph = helper.make_graph([], "g", [], [helper.make_tensor_value_info("x", F32, [])])
    for _ in range(20):
        node = helper.make_node("If", ["c"], ["x"], then_branch=graph, else_branch=graph)
        graph = helper.make_graph([node], "g", [], [helper.make_tensor_value_info("x", F32, [])])
        graph.node[0].attribute[1].g.ClearField("node")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(FileFormatError, match="deep in each other"):
        load(tmp_path / "m.onnx")


def test_what_is_no_model_is_one_error(tmp_path):
    data = bytearray(export(net(), tmp_path / "net", [InputSpec([None, 1, 4, 4])]).read_bytes())
    rng, path = np.random.default_rng(0), tmp_path / "changed.onnx"
    for _ in range(150):
        changed = bytearray(data[: rng.integers(1, len(data))] if rng.integers(2) else data)
        for place in rng.integers(0, len(changed), rng.integers(1, 4)):
            changed[place] = rng.integers(256)
        path.write_bytes(changed)
        try:
            load(path)
        except FileFormatError:
            pass


def test_an_operator_without_a_rule_is_named(tmp_path):
    nodes = [helper.make_node("StringNormalizer", ["x"], ["y"], name="the node")]
    layer = load(written(tmp_path / "m.onnx", nodes, [("x", F32, [4])], [("y", F32, [4])]))
    with pytest.raises(FileFormatError, match=re.escape("StringNormalizer 'the node': there is no rule for it")):
        layer(paddle.zeros([4]))
    with pytest.raises(FileFormatError, match="opset 99 is not one of 7 to 28"):
        load(written(tmp_path / "m.onnx", nodes, [("x", F32, [4])], [("y", F32, [4])], 99))
