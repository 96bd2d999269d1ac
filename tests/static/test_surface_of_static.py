"""What static mode has beside Programs: printing, asserting, places, accuracy with its counts."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import static
from dy2st.errors import MissingExtraError


@pytest.fixture
def program():
    paddle.enable_static()
    with static.program_guard(static.Program(), static.Program()):
        yield
    paddle.disable_static()


def run(fetch, **feed):
    return static.Executor().run(static.default_main_program(), feed=feed, fetch_list=fetch)


@pytest.mark.proves("static.Print")
def test_a_tensor_is_printed_each_time_the_program_runs(program, capsys):
    x = static.data("x", [None], "float32")
    y = static.Print(x, message="x is") * 2
    assert capsys.readouterr().out == ""
    for count in (1, 2):
        np.testing.assert_array_equal(run([y], x=np.ones(count, "float32"))[0], np.full(count, 2.0))
        out = capsys.readouterr().out
        assert out.startswith("x is ")
        assert f"shape=[{count}]" in out


def test_gradients_flow_through_what_is_printed(capsys):
    x = paddle.to_tensor([2.0], stop_gradient=False)
    (static.Print(x) * 3).sum().backward()
    assert x.grad.tolist() == [3.0]
    assert "[2.]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("how", "text"),
    [({"first_n": 2}, "first_n=2 is not supported"), ({"print_phase": "backward"}, "print_phase must be 'both'")],
)
def test_what_cannot_be_printed_is_refused(how, text):
    with pytest.raises(NotImplementedError, match=text):
        static.Print(paddle.ones([1]), **how)


@pytest.mark.proves("static.nn.control_flow.Assert")
def test_an_assertion_is_checked_when_the_program_runs(program):
    x = static.data("x", [1], "float32")
    static.nn.control_flow.Assert((x > 0).all(), [x])
    y = x + 1
    assert run([y], x=np.ones(1, "float32"))[0].tolist() == [2.0]
    with pytest.raises(AssertionError, match=r"\[-1\.\]"):
        run([y], x=-np.ones(1, "float32"))


def test_an_assertion_in_eager_mode_shows_a_few_elements():
    static.nn.control_flow.Assert(paddle.to_tensor([True]))
    with pytest.raises(AssertionError, match=r"^\[\[0\.0, 1\.0\], 'text'\]$"):
        static.nn.control_flow.Assert(paddle.to_tensor(False), [paddle.arange(5.0), "text"], summarize=2)
    with pytest.raises(AssertionError, match=r"^$"):
        static.nn.control_flow.Assert(paddle.to_tensor(False))
    with pytest.raises(TypeError, match="data must be a list or tuple of tensors, not int"):
        static.nn.control_flow.Assert(paddle.to_tensor(True), 3)


@pytest.mark.proves("static.cpu_places static.cuda_places")
def test_places_are_listed(monkeypatch):
    assert static.cpu_places(2) == [paddle.CPUPlace(), paddle.CPUPlace()]
    monkeypatch.setenv("CPU_NUM", "3")
    assert len(static.cpu_places()) == 3
    with pytest.raises(ValueError, match="device_count must be positive, not 0"):
        static.cpu_places(0)


@pytest.mark.skipif(paddle.is_compiled_with_cuda(), reason="there is a CUDA device")
def test_cuda_places_need_a_device():
    with pytest.raises((MissingExtraError, RuntimeError)):
        static.cuda_places()
    with pytest.raises((MissingExtraError, RuntimeError)):
        static.cuda_places([0])


@pytest.mark.proves("static.name_scope static.device_guard")
def test_guards_of_names_and_devices_change_no_result(program):
    x = static.data("x", [1], "float32")
    with static.name_scope("block"), static.device_guard("cpu"):
        y = x * 2
    assert run([y], x=np.ones(1, "float32"))[0].tolist() == [2.0]
    with pytest.raises(TypeError, match="name_scope needs a prefix"), static.name_scope(""):
        pass


def test_a_device_guard_in_eager_mode_ends():
    with static.device_guard("cpu"):
        assert paddle.ones([1]).place.is_cpu_place()
    with pytest.raises(ValueError, match="device 'tpu' is not here"), static.device_guard("tpu"):
        pass


@pytest.mark.proves("static.accuracy")
def test_accuracy_writes_its_counts():
    scores, labels = paddle.to_tensor([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]]), paddle.to_tensor([[1], [1], [1]])
    correct, total = paddle.zeros([1], "int32"), paddle.zeros([1], "int32")
    found = static.accuracy(scores, labels, 1, correct, total)
    np.testing.assert_allclose(found.item(), 2 / 3, rtol=1e-6)
    assert (correct.tolist(), total.tolist()) == ([2], [3])


def test_files_have_their_module():
    assert static.io.load_inference_model is static.load_inference_model
