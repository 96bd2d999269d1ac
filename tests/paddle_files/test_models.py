"""Models of PaddlePaddle: that they give what it gives, as layers, Programs, hand-built Programs and predictors."""

import shutil

import numpy as np
import pytest

import dy2st as paddle
from dy2st import cli, inference
from dy2st.errors import FileFormatError
from dy2st.jit.serialization.translated_layer import TranslatedLayer
from dy2st.paddle_files.rules import RULES
from tests.paddle_files.models import RARE, RELEASES, assert_same, names, runs, unpacked

ALL = [(release, name) for release in RELEASES for name in names(release)]
SOME = [(release, name) for release in RELEASES for name in ("resnet", "recurrent", "branches", "turns")]


def tensors(inputs):
    return {name: paddle.to_tensor(x) for name, x in inputs.items()}


@pytest.mark.parametrize(("release", "name"), ALL)
def test_a_model_gives_what_paddlepaddle_gives(release, name, tmp_path):
    path, found = unpacked(release, name, tmp_path)
    layer = paddle.jit.load(path)
    assert isinstance(layer, TranslatedLayer)
    count = 0
    for inputs, wanted in runs(found):
        assert_same(layer(**tensors(inputs)), wanted)
        count += 1
    assert count


def test_each_rule_is_run_by_a_model(tmp_path, monkeypatch):
    run = set()

    def noting(name, rule):
        def noted(*operands):
            run.add(name)
            return rule(*operands)

        return noted

    for name, rule in RULES.items():
        monkeypatch.setitem(RULES, name, noting(name, rule))
    for release, name in ALL:
        paddle.jit.load(unpacked(release, name, tmp_path)[0])
    assert sorted(RULES.keys() - run) == []


@pytest.mark.parametrize(("release", "name"), [one for one in ALL if one[1] not in RARE])
def test_a_model_is_a_hand_built_program(release, name, tmp_path):
    path, found = unpacked(release, name, tmp_path)
    paddle.enable_static()
    try:
        exe = paddle.static.Executor()
        scope = paddle.static.Scope()
        with paddle.static.scope_guard(scope):
            program, feeds, fetches = paddle.static.load_inference_model(path, exe)
            assert sorted(feeds) == sorted(found["inputs"])
            for inputs, wanted in runs(found):
                assert_same(exe.run(program, feed=inputs, fetch_list=fetches), wanted)
    finally:
        paddle.disable_static()


def test_what_can_be_in_no_program_runs_operation_by_operation(tmp_path, monkeypatch):
    monkeypatch.setitem(RULES, "tanh", lambda node, x: paddle.to_tensor(np.tanh(x.numpy())))
    path, found = unpacked("3.3", "activations", tmp_path)
    with pytest.warns(UserWarning, match=r"runs operation by operation, because pd_op\.tanh can be in no Program"):
        layer = paddle.jit.load(path)
    assert not isinstance(layer, TranslatedLayer)
    for inputs, wanted in runs(found):
        assert_same(layer(**tensors(inputs)), wanted)


@pytest.mark.parametrize("release", RELEASES)
def test_a_hand_built_program_draws_nothing(release, tmp_path):
    path, _ = unpacked(release, "drawn", tmp_path)
    with pytest.raises(FileFormatError, match=r"draws random numbers or sets running statistics; jit.load takes it"):
        paddle.static.load_inference_model(path, paddle.static.Executor())


@pytest.mark.parametrize(("release", "name"), [one for one in ALL if one[1] not in RARE])
def test_a_predictor_runs_a_model(release, name, tmp_path):
    path, found = unpacked(release, name, tmp_path)
    shutil.move(path + ".pdiparams", tmp_path / "weights") if name == "lenet" else None
    config = inference.Config(path + RELEASES[release], str(tmp_path / "weights") if name == "lenet" else None)
    predictor = inference.create_predictor(config)
    assert sorted(predictor.get_input_names()) == sorted(found["inputs"])
    assert predictor.get_output_names() == list(found["outputs"])
    for one in (predictor, predictor.clone()):
        for inputs, wanted in runs(found):
            for name, x in inputs.items():
                handle = one.get_input_handle(name)
                handle.reshape(x.shape)
                handle.copy_from_cpu(x)
            assert one.run() is True
            assert_same([one.get_output_handle(n).copy_to_cpu() for n in one.get_output_names()], wanted)


@pytest.mark.parametrize(("release", "name"), SOME)
def test_a_model_saves_as_ours_and_is_called_under_to_static(release, name, tmp_path):
    path, found = unpacked(release, name, tmp_path)
    layer = paddle.jit.load(path)
    paddle.jit.save(layer, str(tmp_path / "ours"))
    again = paddle.jit.load(str(tmp_path / "ours"))
    static = paddle.jit.to_static(lambda *xs: layer(*xs), full_graph=True)
    for inputs, wanted in runs(found):
        assert_same(again(**tensors(inputs)), wanted)
        in_order = [paddle.to_tensor(inputs[n]) for n in layer._methods["forward"].signature.parameters]
        assert_same(static(*in_order), wanted)


@pytest.mark.parametrize("release", RELEASES)
def test_loops_and_branches_stay_in_the_program(release, tmp_path):
    kinds = {}
    for name in ("loops", "turns", "branches", "early"):
        layer = paddle.jit.load(unpacked(release, name, tmp_path)[0])
        kinds[name] = {operation.name for operation in layer.program().walk()}
    assert "while_loop" in kinds["loops"]
    assert {"while_loop", "cond"} <= kinds["turns"]
    assert {"while_loop", "cond"} <= kinds["early"]
    assert "cond" in kinds["branches"]


@pytest.mark.parametrize("release", RELEASES)
def test_a_model_trains(release, tmp_path):
    layer = paddle.jit.load(unpacked(release, "lenet", tmp_path)[0])
    layer.train()
    x, y = paddle.randn([8, 1, 12, 12]), paddle.to_tensor(np.arange(8) % 5)
    optimizer = paddle.optimizer.Adam(learning_rate=0.02, parameters=layer.parameters())
    losses = []
    for _ in range(25):
        loss = -paddle.log(paddle.take_along_axis(layer(x), y.unsqueeze(1), 1)).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    assert losses[-1] < 0.6 * losses[0]


@pytest.mark.parametrize("release", RELEASES)
def test_weights_keep_their_names_and_statistics_are_no_parameters(release, tmp_path):
    layer = paddle.jit.load(unpacked(release, "resnet", tmp_path)[0])
    parameters, buffers = dict(layer.named_parameters()), dict(layer.named_buffers())
    assert sum(name.startswith("conv2d_") and name.endswith(".w_0") for name in parameters) == 6
    assert len(buffers) == 2 * sum(name.startswith("batch_norm") and name.endswith("w_0") for name in parameters)


def test_the_command_inspects_runs_and_builds_a_model(tmp_path, capsys):
    path, found = unpacked("3.3", "lenet", tmp_path)
    assert cli.main(["inspect", path]) == 0
    assert "forward(image)" in capsys.readouterr().out
    (inputs, wanted), *_ = runs(found)
    np.save(tmp_path / "image.npy", inputs["image"])
    out = tmp_path / "out.npz"
    assert cli.main(["run", path, "--input", f"image={tmp_path / 'image.npy'}", "--output", str(out)]) == 0
    assert_same(list(np.load(out).values()), wanted)
    assert cli.main(["build", path, "-o", str(tmp_path / "built")]) == 0
    assert any((tmp_path / "built").iterdir())


def test_a_pool_has_predictors_of_one_model(tmp_path):
    path, found = unpacked("2.6", "lenet", tmp_path)
    pool = inference.PredictorPool(inference.Config(path), 2)
    (inputs, wanted), *_ = runs(found)
    for i in range(2):
        assert_same(pool.retrive(i).run([inputs["image"]]), wanted)
    assert pool.retrive(0) is not pool.retrive(1)


def test_our_own_file_goes_before_one_of_paddlepaddle(tmp_path):
    path, _ = unpacked("3.3", "lenet", tmp_path)
    paddle.jit.save(paddle.nn.ReLU(), path, input_spec=[paddle.static.InputSpec([None])])
    assert paddle.jit.load(path)(paddle.to_tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
    assert inference.create_predictor(inference.Config(path)).run([np.float32([-1, 2])])[0].tolist() == [0.0, 2.0]
    assert list(paddle.jit.load(path + ".json")._methods["forward"].signature.parameters) == ["image"]
