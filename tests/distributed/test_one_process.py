"""Scripts for several processes run in one; what would need more is refused."""

import subprocess
import sys
import time

import numpy as np
import pytest

import dy2st as paddle
from dy2st import distributed as dist
from dy2st.distributed import launch
from dy2st.errors import MissingExtraError
from dy2st.ir.context import current


@pytest.fixture(autouse=True)
def not_initialized(monkeypatch):
    monkeypatch.setattr(current().process, "parallel", None)


@pytest.mark.proves("distributed.init_parallel_env")
def test_there_is_one_process():
    assert not dist.is_initialized()
    env = dist.init_parallel_env()
    assert dist.is_initialized()
    assert (env.rank, env.world_size, env.local_rank, env.nranks, env.device_id) == (0, 1, 0, 1, 0)
    assert (dist.get_rank(), dist.get_world_size()) == (0, 1)


@pytest.mark.proves("DataParallel")
def test_a_data_parallel_layer_trains_like_the_layer_itself():
    layer = paddle.nn.Linear(2, 1)
    both = paddle.DataParallel(layer)
    x = paddle.ones([3, 2])
    with both.no_sync():
        both.scale_loss(both(x).sum()).backward()
    both.apply_collective_grads()
    np.testing.assert_allclose(layer.weight.grad.numpy(), np.full([2, 1], 3.0))
    assert [id(p) for p in both.parameters()] == [id(p) for p in layer.parameters()]
    assert list(both.state_dict()) == ["weight", "bias"]
    both.set_state_dict({"weight": np.zeros([2, 1], "float32"), "bias": np.ones([1], "float32")})
    assert both(x).tolist() == [[1.0]] * 3


@pytest.mark.proves("distributed.spawn")
def test_a_function_runs_in_a_process_of_its_own(tmp_path):
    def write(text):
        (tmp_path / "out").write_text(text)

    dist.spawn(write, ("here",), nprocs=1, start_method="fork")
    assert (tmp_path / "out").read_text() == "here"
    started = dist.spawn(time.sleep, (0.3,), join=False, daemon=True, start_method="fork")
    assert not started.join(0.01)
    assert started.join()


def test_its_failure_is_raised():
    with pytest.raises(RuntimeError, match="the process ended with exit code 3"):
        dist.spawn(exit, (3,), start_method="fork")


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: dist.spawn(print, nprocs=0), ValueError, "nprocs=0 is not a number of processes"),
        (lambda: dist.spawn(print, ips="here"), TypeError, "unexpected option 'ips'"),
        (lambda: dist.spawn(print, start_method="magic"), ValueError, "start_method must be one of spawn, fork"),
        (lambda: dist.init_parallel_env({"a": 1}), NotImplementedError, "nccl_config has no meaning"),
        (lambda: paddle.DataParallel(3), TypeError, "DataParallel takes a Layer, not int"),
    ],
)
def test_what_needs_more_processes_is_refused(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_one_process_needs_no_mpi():
    code = "import sys, dy2st; dy2st.distributed.init_parallel_env(); print('mpi4py' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_several_processes_without_the_extra_are_told_its_name(monkeypatch):
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dy2st\[mpi\]'"):
        dist.init_parallel_env()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["absent.py"], "there is no script absent.py"),
        (["--nproc_per_node", "0", "x.py"], "at least one process, not 0"),
        (["--max-restarts", "-1", "x.py"], "so many times or never (0), not -1"),
    ],
)
def test_a_job_that_cannot_be_is_told_before_it_starts(arguments, said, capsys):
    with pytest.raises(SystemExit):
        launch.main(arguments)
    assert said in capsys.readouterr().err


def test_another_launcher_of_several_processes_is_refused(monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "4")
    with pytest.raises(RuntimeError, match="says 4 processes, and MPI's launcher started 1"):
        dist.init_parallel_env()
