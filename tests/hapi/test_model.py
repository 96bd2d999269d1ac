"""Model: what Paddle 3.3 gave for the same data and weights, what callbacks see, saving, refusals."""

import inspect
import re

import numpy as np
import pytest

import dy2st as paddle
from dy2st.static import InputSpec

X = np.linspace(-1, 1, 80).reshape(20, 4).astype("float32") ** 3 * np.array([1, -2, 3, -1], "float32")
Y = (X.sum(1, keepdims=True) > 0).astype("int64")


class Data(paddle.io.Dataset):
    def __len__(self):
        return len(X)

    def __getitem__(self, i):
        return X[i], Y[i]


class Unlabelled(Data):
    def __getitem__(self, i):
        return (X[i],)


class Log(paddle.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __getattribute__(self, name):
        if name.startswith("on_"):
            seen = object.__getattribute__(self, "seen")
            return lambda *arguments: seen.append((name[3:], arguments))
        return object.__getattribute__(self, name)


def made(rate=0.05, metrics=(), **how):
    network = paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.ReLU(), paddle.nn.Linear(8, 2))
    for p in network.parameters():
        p.set_value((np.arange(p.size).reshape(p.shape) % 5 - 2).astype("float32") / 5)
    model = paddle.Model(network, [InputSpec([None, 4], "float32", "x")], [InputSpec([None, 1], "int64", "y")])
    optimizer = paddle.optimizer.Adam(rate, parameters=model.parameters())
    model.prepare(optimizer, paddle.nn.CrossEntropyLoss(), list(metrics), **how)
    return model


@pytest.mark.proves("Model")
def test_fit_learns_and_evaluate_and_predict_agree():
    model = made(metrics=[paddle.metric.Accuracy()])
    before = model.evaluate(Data(), batch_size=8, verbose=0)
    model.fit(Data(), Data(), batch_size=8, epochs=30, verbose=0)
    after = model.evaluate(Data(), batch_size=8, verbose=0)
    assert after["loss"][0] < before["loss"][0]
    (scores,) = model.predict(Data(), batch_size=8, stack_outputs=True, verbose=0)
    assert np.mean(scores.argmax(1) == Y[:, 0]) == after["acc"]


def test_a_network_under_to_static_tells_its_inputs_from_labels():
    network = paddle.jit.to_static(paddle.nn.Linear(4, 2))
    assert [*inspect.signature(network.forward).parameters] == [
        *inspect.signature(paddle.nn.Linear.forward).parameters
    ][1:]
    model = paddle.Model(network)
    model.prepare(paddle.optimizer.SGD(0.1, parameters=network.parameters()), paddle.nn.CrossEntropyLoss())
    before = model.evaluate(Data(), batch_size=8, verbose=0)["loss"][0]
    model.fit(Data(), batch_size=8, epochs=3, verbose=0)
    assert model.evaluate(Data(), batch_size=8, verbose=0)["loss"][0] < before


def test_callbacks_see_a_run_in_order():
    log = Log()
    made(metrics=[paddle.metric.Accuracy()]).fit(
        Data(), Data(), batch_size=10, epochs=2, eval_freq=2, verbose=0, callbacks=log
    )
    batch, check = ["train_batch_begin", "train_batch_end"] * 2, ["eval_batch_begin", "eval_batch_end"] * 2
    want = ["train_begin", "epoch_begin", *batch, "epoch_end", "eval_begin", *check, "eval_end",
            "epoch_begin", *batch, "epoch_end", "train_end"]  # fmt: skip
    assert [name for name, _ in log.seen] == want
    assert log.seen[3][1][1].keys() == {"loss", "acc", "step", "batch_size"}
    assert log.params["steps"] == 2


def test_accumulated_batches_are_one_step():
    one, two = made(), made()
    one.fit(Data(), batch_size=20, shuffle=False, verbose=0)
    two._loss = lambda x, y: paddle.nn.functional.cross_entropy(x, y) / 2
    two.fit(Data(), batch_size=10, shuffle=False, verbose=0, accumulate_grad_batches=2)
    for p, q in zip(one.parameters(), two.parameters()):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-4, atol=1e-6)


def test_a_number_of_batches_ends_the_run():
    log = Log()
    made().fit(Data(), batch_size=4, epochs=5, num_iters=7, verbose=0, callbacks=[log])
    assert sum(name == "train_batch_end" for name, _ in log.seen) == 7


def test_what_is_saved_is_loaded(tmp_path):
    model, other = made(), made()
    model.fit(Data(), batch_size=8, verbose=0, save_dir=str(tmp_path))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.pdopt", "0.pdparams", "final.pdopt", "final.pdparams"]
    other.load(str(tmp_path / "final"))
    np.testing.assert_array_equal(other.predict_batch(X)[0], model.predict_batch(X)[0])
    model.save(str(tmp_path / "program"), training=False)
    loaded = paddle.jit.load(str(tmp_path / "program"))
    np.testing.assert_allclose(loaded(paddle.to_tensor(X)).numpy(), model.predict_batch(X)[0], rtol=1e-6)


def test_a_state_that_does_not_fit_is_named(tmp_path):
    made().save(str(tmp_path / "m"))
    other = paddle.Model(paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.ReLU(), paddle.nn.Linear(8, 3)))
    with pytest.raises(ValueError, match=r"m\.pdparams does not have, or not in this shape: 2\.bias, 2\.weight"):
        other.load(str(tmp_path / "m"))
    other.load(str(tmp_path / "m"), skip_mismatch=True)
    assert other.network[0].bias.numpy()[0] == np.float32(-0.4)


def test_mixed_precision_trains_too():
    model = made(amp_configs="O1")
    losses = [float(model.train_batch(X, Y)[0]) for _ in range(30)]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(("verbose", "text"), [
    (0, r"^$"),
    (2, r"Epoch 1/1\nstep 1/2 - loss: \d\.\d{4} - acc: \d\.\d{4} - \d+ms/step\nstep 2/2 .*\nEval begin\.\.\.\n"),
    (1, r"step 1/2 \[=+>\.+\] - loss.*step 2/2 \[={30}\] - loss.*\n(.*\n)*Eval samples: 20"),
])  # fmt: skip
def test_progress_is_shown(verbose, text, capsys):
    made(metrics=[paddle.metric.Accuracy()]).fit(Data(), Data(), batch_size=10, verbose=verbose, log_freq=1)
    assert re.search(text, capsys.readouterr().out)


def test_prediction_takes_samples_without_labels(capsys):
    columns = made().predict(Unlabelled(), batch_size=8, verbose=2)
    assert [batch.shape for batch in columns[0]] == [(8, 2), (8, 2), (4, 2)]
    assert capsys.readouterr().out.endswith("Predict samples: 20\n")


def test_an_early_end_after_evaluations_that_are_no_better(tmp_path, capsys):
    log, stop = Log(), paddle.callbacks.EarlyStopping(patience=2, baseline=0.0)
    made().fit(Data(), Data(), batch_size=20, epochs=9, verbose=0, callbacks=[log, stop])
    assert sum(name == "epoch_end" for name, _ in log.seen) == 2
    assert capsys.readouterr().out == "Epoch 2: early stopping, loss was best at 0.00000\n"
    best = paddle.callbacks.EarlyStopping(verbose=0, mode="max")
    made().fit(Data(), Data(), batch_size=20, epochs=9, verbose=0, callbacks=best, save_dir=str(tmp_path))
    assert (tmp_path / "best_model.pdparams").exists()


def test_the_learning_rate_falls_on_a_plateau(capsys):
    model = made(rate=0.0)
    model._optimizer.set_lr(0.4)
    reduce = paddle.callbacks.ReduceLROnPlateau(factor=0.5, patience=1, min_delta=100.0, cooldown=1, min_lr=0.1)
    model.fit(Data(), Data(), batch_size=20, epochs=6, verbose=0, callbacks=reduce)
    assert model._optimizer.get_lr() == 0.1
    assert capsys.readouterr().out.count("the learning rate is now") == 2


def test_a_scheduler_is_stepped_by_batches_or_epochs():
    for callbacks, steps in ((None, 4), (paddle.callbacks.LRScheduler(by_step=False, by_epoch=True), 2)):
        model = made()
        rate = paddle.optimizer.lr.ExponentialDecay(1.0, 0.5)
        model.prepare(paddle.optimizer.SGD(rate, parameters=model.parameters()), paddle.nn.CrossEntropyLoss())
        model.fit(Data(), batch_size=10, epochs=2, verbose=0, callbacks=callbacks)
        assert rate() == 0.5**steps


def test_summary_takes_the_specs(capsys):
    assert made().summary() == {"total_params": 58, "trainable_params": 58}
    assert "Linear-1" in capsys.readouterr().out


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda: paddle.Model(3), TypeError, "Model needs a Layer, not int"),
    (lambda: made().prepare(loss=3), TypeError, "the loss must be a Layer or a function, not int"),
    (lambda: made().prepare(metrics=[3]), TypeError, "metrics must be Metrics, not int"),
    (lambda: made().fit(), ValueError, "Model.fit needs train_data"),
    (lambda: paddle.Model(paddle.nn.Linear(4, 2)).train_batch(X), RuntimeError, "has to be given an optimizer"),
    (lambda: paddle.Model(paddle.nn.Linear(4, 2)).save("x", training=False), RuntimeError, "needs InputSpecs"),
    (lambda: paddle.callbacks.LRScheduler(True, True), ValueError, "by_step and by_epoch exclude each other"),
    (lambda: paddle.callbacks.ReduceLROnPlateau(factor=2), ValueError, "factor must be below 1, not 2"),
    (lambda: paddle.callbacks.EarlyStopping(mode="x"), ValueError, "mode is 'x', not 'auto', 'min' or 'max'"),
    (lambda: paddle.flops(3, [1]), TypeError, "flops needs a Layer, not int"),
])  # fmt: skip
def test_wrong_use_is_named(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_a_loss_is_needed_for_training():
    model = paddle.Model(paddle.nn.Linear(4, 2))
    model.prepare(paddle.optimizer.SGD(0.1, parameters=model.parameters()))
    with pytest.raises(RuntimeError, match="has to be given a loss"):
        model.train_batch(X, Y)


@pytest.mark.proves("flops")
def test_flops_are_counted_as_paddle_counts_them(capsys):
    nn = paddle.nn
    network = nn.Sequential(
        nn.Conv2D(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2, 2), nn.BatchNorm2D(6), nn.Conv2DTranspose(6, 4, 2),
        nn.AdaptiveAvgPool2D(2), nn.Flatten(), nn.Linear(16, 10),
    )  # fmt: skip
    network.train()
    counts = 6 * 28**2 * 10 + 2 * 6 * 14**2 + 4 * 15**2 * (6 * 4 + 1) + 4 * 4 * (7 * 7 + 1) + 160
    assert paddle.flops(network, [1, 1, 28, 28], print_detail=True) == counts
    assert f"Total Flops: {counts}     Total Params: {60 + 24 + 100 + 170 - 12}" in capsys.readouterr().out
    assert network.training


def test_flops_of_a_layer_of_ones_own():
    class Twice(paddle.nn.Layer):
        def forward(self, x):
            return x * 2

    def count(layer, inputs, output):
        layer.total_ops += 7

    assert paddle.flops(Twice(), [1, 3], custom_ops={Twice: count}) == 7
