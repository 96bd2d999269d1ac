"""DataLoader: batches in this process and from workers, in order; errors say where they come from."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import dy2st as paddle
from dy2st.io import DataLoader, Dataset, IterableDataset, get_worker_info


class Squares(Dataset):
    def __init__(self, count=5):
        self.count = count

    def __getitem__(self, i):
        return np.full([2], i, "float32"), i * i

    def __len__(self):
        return self.count


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(5))


class Breaks(Squares):
    def __getitem__(self, i):
        if i == 3:
            raise KeyError("sample 3 is broken")
        return i


class Slow(Squares):
    def __getitem__(self, i):
        time.sleep(1)
        return i


class Ends(Squares):
    def __getitem__(self, i):
        os._exit(1)


class Sleeps(Squares):
    def __getitem__(self, i):
        time.sleep(0.5)
        return i


class WhoAmI(Squares):
    def __getitem__(self, i):
        info = get_worker_info()
        return np.array([info.id, info.num_workers, len(info.dataset)])


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.proves("io.DataLoader")
def test_batches_come_in_order(workers):
    loader = DataLoader(Squares(), batch_size=2, num_workers=workers)
    for _ in range(2):
        batches = list(loader)
        assert [y.tolist() for _, y in batches] == [[0, 1], [4, 9], [16]]
        assert all(isinstance(t, paddle.Tensor) for batch in batches for t in batch)
    assert batches[0][0].dtype == "float32"
    assert len(loader) == 3


def test_the_last_batch_may_be_dropped():
    loader = DataLoader(Squares(), batch_size=2, drop_last=True)
    assert len(loader) == len(list(loader)) == 2


def test_shuffled_batches_hold_every_sample_once_and_repeat_with_the_seed():
    def epoch():
        np.random.seed(3)
        return [i for _, y in DataLoader(Squares(20), batch_size=3, shuffle=True) for i in y.tolist()]

    assert epoch() == epoch()
    assert epoch() != sorted(epoch())
    assert sorted(epoch()) == [i * i for i in range(20)]


def test_without_a_batch_size_samples_come_one_by_one():
    loader = DataLoader(Squares(), batch_size=None)
    assert len(loader) == 5
    assert [x.shape for x, _ in loader] == [[2]] * 5
    assert [y for _, y in loader] == [0, 1, 4, 9, 16]


def test_a_stream_has_batches_but_no_length():
    assert [b.tolist() for b in DataLoader(Stream(), batch_size=2)] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in DataLoader(Stream(), batch_size=2, drop_last=True)] == [[0, 1], [2, 3]]
    assert list(DataLoader(Stream(), batch_size=None)) == [0, 1, 2, 3, 4]
    with pytest.raises(TypeError, match="a DataLoader of an IterableDataset has no length"):
        len(DataLoader(Stream()))


def test_a_batch_sampler_and_a_collate_function_decide():
    sampler = paddle.io.BatchSampler(sampler=[4, 0, 2], batch_size=2)
    loader = DataLoader(Squares(), batch_sampler=sampler, collate_fn=lambda samples: sum(y for _, y in samples))
    assert list(loader()) == [16, 4]


def test_fields_of_every_kind_are_collated():
    samples = [{"a": 1, "b": [2.0, paddle.ones([2])], "c": "x"}, {"a": 3, "b": [4.0, paddle.zeros([2])], "c": "y"}]
    batch = next(iter(DataLoader(samples, batch_size=2)))
    assert batch["a"].tolist() == [1, 3]
    assert batch["b"][1].tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert batch["c"] == ["x", "y"]


def test_batches_feed_an_executor():
    paddle.enable_static()
    x = paddle.static.data("x", [None, 2])
    total = x.sum()
    exe = paddle.static.Executor()
    data = [np.full([2], i, "float32") for i in range(3)]
    paddle.disable_static()
    loader = DataLoader(data, feed_list=[x], return_list=False, batch_size=2)
    feeds = [{"x": feed["x"].numpy()} for (feed,) in loader]
    paddle.enable_static()
    assert [float(exe.run(feed=feed, fetch_list=[total])[0]) for feed in feeds] == [2.0, 4.0]


def test_an_error_in_a_worker_is_raised_with_its_line():
    loader = DataLoader(Breaks(), batch_size=2, num_workers=1)
    with pytest.raises(KeyError, match="DataLoader worker 0 failed") as caught:
        list(loader)
    assert "sample 3 is broken" in str(caught.value)
    assert "__getitem__" in str(caught.value)


def test_an_error_in_this_process_is_raised_as_it_is():
    with pytest.raises(KeyError, match=r"^'sample 3 is broken'$"):
        list(DataLoader(Breaks(), batch_size=2))


def test_a_worker_that_ends_is_noticed():
    with pytest.raises(RuntimeError, match="a worker process ended before its batch was made"):
        list(DataLoader(Ends(), num_workers=1))


def test_a_worker_that_takes_too_long_is_given_up():
    with pytest.raises(RuntimeError, match=r"no batch came from a worker within 0\.05 s"):
        list(DataLoader(Sleeps(1), num_workers=1, timeout=0.05))


@pytest.mark.proves("io.get_worker_info")
def test_workers_know_who_they_are_and_begin_as_told(tmp_path):
    loader = DataLoader(
        WhoAmI(), num_workers=2, worker_init_fn=lambda number: (tmp_path / str(number)).write_text("here")
    )
    rows = [row.tolist()[0] for row in loader]
    assert {tuple(row[1:]) for row in rows} == {(2, 5)}
    assert {row[0] for row in rows} <= {0, 1}
    assert (tmp_path / "0").exists()
    assert get_worker_info() is None


def test_leaving_a_loop_early_ends_the_workers():
    for x, _ in DataLoader(Squares(50), num_workers=2):
        assert x.shape == [1, 2]
        break


@pytest.mark.parametrize(
    ("how", "kind", "text"),
    [
        ({"num_workers": -1}, ValueError, "num_workers and timeout must not be negative"),
        ({"return_list": False}, ValueError, "return_list=False needs feed_list"),
        ({"batch_size": 0}, ValueError, "batch_size must be a positive int"),
        ({"batch_sampler": [[0]], "shuffle": True}, ValueError, "batch_sampler decides batch_size"),
        ({"places": ["cpu", "cpu"]}, NotImplementedError, "made on one place, not on 2"),
    ],
)
def test_what_does_not_go_together_is_refused(how, kind, text):
    with pytest.raises(kind, match=text):
        DataLoader(Squares(), **how)


def test_streams_refuse_order_and_workers():
    with pytest.raises(ValueError, match="IterableDataset have no other order"):
        DataLoader(Stream(), shuffle=True)
    with pytest.raises(NotImplementedError, match="num_workers must be 0 for an IterableDataset"):
        DataLoader(Stream(), num_workers=1)


@pytest.mark.parametrize(
    ("samples", "kind", "text"),
    [
        ([np.ones(2), np.ones(3)], ValueError, r"samples of shapes \[2\] and \[3\] do not make a batch"),
        ([[1], [1, 2]], ValueError, "samples of 1 and 2 fields do not make a batch"),
        ([object(), object()], TypeError, "a sample holds a object: give a collate_fn"),
    ],
)
def test_samples_that_make_no_batch_are_named(samples, kind, text):
    with pytest.raises(kind, match=text):
        list(DataLoader(samples, batch_size=2))


class Tensors(Squares):
    def __getitem__(self, i):
        return paddle.tanh(paddle.full([8], i)).numpy(), np.float32(i)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("backend", ["native", "auto"])
def test_workers_beside_a_training_whose_code_is_being_made(monkeypatch, tmp_path, backend):
    monkeypatch.setenv("DY2ST_BACKEND", backend)
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(tmp_path))
    for width in (16, 17, 18):  # a Program each
        network = paddle.nn.Sequential(paddle.nn.Linear(8, width), paddle.nn.Tanh(), paddle.nn.Linear(width, 1))
        optimizer = paddle.optimizer.Adam(0.01, parameters=network.parameters())

        @paddle.jit.to_static
        def step(x, y, network=network, optimizer=optimizer):
            loss = ((network(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        losses = []
        for x, y in DataLoader(Tensors(24), batch_size=4, num_workers=2, timeout=60):
            losses.append(float(step(x, y.reshape([-1, 1]))))
            if len(losses) == 2:
                assert len(list(DataLoader(Tensors(8), batch_size=4, num_workers=2, timeout=60))) == 2
        assert len(losses) == 6
        assert np.isfinite(losses).all()


KILLED = """
import sys
import numpy as np
from dy2st.io import DataLoader, Dataset, get_worker_info
import os

class Own(Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, i):
        return np.int64(os.getpid())

for batch in DataLoader(Own(), num_workers=2):
    print(int(batch), flush=True)
    sys.stdin.readline()
"""


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="processes are looked up in /proc")
def test_workers_end_with_a_process_that_is_killed():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", KILLED], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        worker = int(process.stdout.readline())
        assert os.path.exists(f"/proc/{worker}")
        process.kill()
    deadline = time.monotonic() + 10
    while os.path.exists(f"/proc/{worker}"):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_what_a_handler_of_a_signal_raises_is_no_timeout_of_the_loader():
    def handle(*_):
        raise TimeoutError("from the handler")

    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(TimeoutError, match="from the handler"):
            list(DataLoader(Slow(), num_workers=1))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
