"""Sharded state, checkpoints and pipelines of one process: as the model and the optimizer themselves."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import distributed as dist
from dy2st.distributed import fleet
from dy2st.distributed.fleet import meta_parallel
from dy2st.distributed.sharding import group_sharded_parallel, save_group_sharded_model
from dy2st.errors import FileFormatError
from dy2st.ir.context import current

X = np.array([[1.0, 2.0]], "float32")


@pytest.fixture(autouse=True)
def not_initialized(monkeypatch):
    monkeypatch.setattr(current().process, "parallel", None)


def trained():
    """Return a layer and an optimizer that keeps a state, as one process of a group that shares it."""
    model = paddle.nn.Linear(2, 3)
    model, optimizer, _ = group_sharded_parallel(
        model, paddle.optimizer.Adam(0.1, parameters=model.parameters()), "os_g"
    )
    model(paddle.to_tensor(X)).sum().backward()
    optimizer.step()
    return model, optimizer


@pytest.mark.proves("distributed.sharding.group_sharded_parallel")
def test_a_sharded_model_is_saved_whole(tmp_path):
    model, optimizer = trained()
    save_group_sharded_model(model, str(tmp_path / "out"), optimizer)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["model.pdmodel", "model.pdopt"]
    found = paddle.load(str(tmp_path / "out" / "model.pdopt"))
    assert {name: t.tolist() for name, t in found.items()} == {n: t.tolist() for n, t in optimizer.state_dict().items()}
    optimizer.set_state_dict(found)
    assert paddle.load(str(tmp_path / "out" / "model.pdmodel"))["bias"].tolist() == model.state_dict()["bias"].tolist()
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="file is a file, and a folder is needed"):
        save_group_sharded_model(model, str(tmp_path / "file"))


def test_what_cannot_be_sharded_is_refused(tmp_path):
    model, optimizer = trained()
    with pytest.raises(NotImplementedError, match="parameters stay whole"):
        group_sharded_parallel(model, optimizer, "p_g_os")
    with pytest.raises(ValueError, match='the level is "os" or "os_g", not \'o\''):
        group_sharded_parallel(model, optimizer, "o")
    with pytest.raises(NotImplementedError, match="offload is not here"):
        group_sharded_parallel(model, optimizer, "os", offload=True)
    with pytest.raises(TypeError, match="steps of a LBFGS cannot be spread"):
        group_sharded_parallel(model, paddle.optimizer.LBFGS(parameters=model.parameters()), "os")
    with pytest.raises(ValueError, match="set_state_dict: there is no state of"):
        optimizer.set_state_dict({})


def test_a_checkpoint_is_whole_or_not_there(tmp_path):
    model, optimizer = trained()
    folder = str(tmp_path / "c")
    for number in range(3):
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": number, "name": "a",
                 "half": paddle.full([2], number, "bfloat16"), "array": np.arange(3) + number}  # fmt: skip
        dist.save_state_dict(state, folder, keep=2, async_save=number == 1)
        (tmp_path / "c" / f"0_9_{'0' * 16}.distcp").write_text("left by a process that was killed")
    saved = model.state_dict()["weight"].numpy().copy()
    with paddle.no_grad():
        model.state_dict()["weight"].zero_()
    state |= {"step": None, "name": None, "array": np.zeros(3, "int64"), "half": paddle.zeros([2], "bfloat16")}
    dist.load_state_dict(state, folder)
    np.testing.assert_array_equal(model.state_dict()["weight"].numpy(), saved)
    assert (state["step"], state["name"], state["array"].tolist()) == (2, "a", [2, 3, 4])
    assert state["half"].astype("float32").tolist() == [2.0, 2.0]
    dist.load_state_dict(state, folder, unique_id=1)
    assert state["step"] == 1
    with pytest.raises(FileNotFoundError, match="no whole checkpoint 0 in"):
        dist.load_state_dict(state, folder, unique_id=0)
    with pytest.raises(ValueError, match="has no tensor 'other'"):
        dist.load_state_dict({"other": paddle.ones([1])}, folder)
    with pytest.raises(ValueError, match=r"'half' is float32\[2\], in the checkpoint bfloat16\[2\]"):
        dist.load_state_dict({"half": paddle.ones([2])}, folder)
    with pytest.raises(ValueError, match="has no value 'epoch'"):
        dist.load_state_dict({"epoch": 1}, folder)
    with pytest.raises(TypeError, match="'x' is of type object"):
        dist.save_state_dict({"x": object()}, folder)
    with pytest.raises(ValueError, match=r"two things have the name 'a\.b'"):
        dist.save_state_dict({"a": {"b": 1}, "a.b": 2}, folder)


def test_a_damaged_checkpoint_is_told(tmp_path):
    dist.save_state_dict({"x": paddle.ones([4])}, str(tmp_path))
    part, index = sorted(tmp_path.iterdir(), key=lambda path: path.suffix)
    for path, text in ((part, "checksum differs"), (index, "altered or cut short")):
        before = path.read_bytes()
        path.write_bytes(before[:-3] + bytes([before[-3] ^ 1]) + before[-2:])
        with pytest.raises(FileFormatError, match=text):
            dist.load_state_dict({"x": paddle.zeros([4])}, str(tmp_path))
        path.write_bytes(before)


def test_a_pipeline_of_one_stage_trains_by_micro_batches():
    strategy = fleet.DistributedStrategy()
    strategy.pipeline_configs = {"accumulate_steps": 2, "micro_batch_size": 2}
    fleet.init(is_collective=True, strategy=strategy)
    one = meta_parallel.LayerDesc
    net = meta_parallel.PipelineLayer([one(paddle.nn.Linear, 2, 2), lambda x: (x, x), paddle.add], loss_fn=paddle.mean)
    net._loss_fn = lambda y, label: ((y - label) ** 2).mean()
    model = fleet.distributed_model(net)
    optimizer = paddle.optimizer.SGD(0.1, parameters=model.parameters())
    x = paddle.to_tensor(np.arange(8.0).reshape(4, 2), "float32")
    whole = ((model(x) - x) ** 2).mean()
    wanted = paddle.grad(whole, net.parameters())[0]
    before = net.parameters()[0].numpy().copy()
    assert float(model.train_batch((x, x), optimizer)) == pytest.approx(float(whole), rel=1e-5)
    np.testing.assert_allclose((before - net.parameters()[0].numpy()) / 0.1, wanted.numpy(), rtol=1e-4)
    assert [t.shape for t in model.eval_batch((x, x), compute_loss=False)] == [[2, 2], [2, 2]]
    with pytest.raises(ValueError, match="6 rows are not 2 micro-batches of 2"):
        model.train_batch((paddle.ones([6, 2]),) * 2, optimizer)
    with pytest.raises(TypeError, match="a pair: inputs and labels"):
        model.train_batch(x, optimizer)
    with pytest.raises(TypeError, match="takes a class of layers"):
        one(paddle.tanh)
    with pytest.raises(ValueError, match="seg_method is"):
        meta_parallel.PipelineLayer([paddle.tanh], seg_method="even")
    with pytest.raises(Exception, match="call it outside of the static function"):
        paddle.jit.to_static(lambda x: model.train_batch((x, x), optimizer), full_graph=True)(x)
