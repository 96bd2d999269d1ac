"""Parameters and the state of their optimizer: two files that are of one save, wherever the process that saves ends."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.files import atomic, generations, state_files


class Ended(BaseException):
    """The process was killed: no handler of an ordinary error runs, and nothing is tidied up."""


def both(stem: Path) -> tuple[int, int]:
    first, second = generations.load(str(stem), state_files.load)
    return first["generation"], second["generation"]


def save(stem: Path, generation: int) -> None:
    array = np.full(1000, generation, "float32")
    generations.save({"generation": generation, "w": array}, {"generation": generation, "m": array}, str(stem))


@pytest.fixture
def stem(tmp_path: Path) -> Path:
    save(tmp_path / "m", 1)
    return tmp_path / "m"


def test_two_files_are_left_and_nothing_beside_them(stem: Path) -> None:
    save(stem, 2)
    assert both(stem) == (2, 2)
    assert {path.name for path in stem.parent.iterdir()} == {"m.pdparams", "m.pdopt"}


@pytest.mark.parametrize("call", ["replace", "fsync", "write", "flock", "unlink"])
@pytest.mark.parametrize("at", range(6))
def test_a_process_that_ends_at_any_call_leaves_one_generation(
    stem: Path, monkeypatch: pytest.MonkeyPatch, call: str, at: int
) -> None:
    child = os.fork()
    if not child:
        left = [at]

        def ends(real: Any) -> Any:
            def called(*given: Any, **named: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    os._exit(9)
                return real(*given, **named)

            return called

        where: Any = {"flock": atomic.fcntl, "write": state_files.safetensors_io}.get(call, os)
        name = "_write_out" if call == "write" else call
        setattr(where, name, ends(getattr(where, name)))
        try:
            save(stem, 2)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    one, other = both(stem)
    assert one == other
    assert paddle.load(f"{stem}.pdopt")["generation"] == paddle.load(f"{stem}.pdparams")["generation"]
    save(stem, 3)
    assert both(stem) == (3, 3)
    assert {path.name for path in stem.parent.iterdir()} == {"m.pdparams", "m.pdopt"}


@pytest.mark.parametrize("at", range(5))
def test_an_error_leaves_the_old_files(stem: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    real, left = os.fsync, [at]

    def full(handle: int) -> None:
        left[0] -= 1
        if left[0] == -1:
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save(stem, 2)
    monkeypatch.undo()
    one, other = both(stem)
    assert one == other
    assert not list(stem.parent.glob(".*.tmp"))


def test_a_first_save_that_ends_between_the_two_files_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.replace

    def replace(source: Any, target: Any) -> None:
        if str(target).endswith("m.pdopt"):
            raise Ended
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(Ended):
        save(tmp_path / "m", 1)
    monkeypatch.undo()
    assert both(tmp_path / "m") == (1, 1)


def test_what_another_process_saves_while_it_is_read_is_not_mixed_in(stem: Path) -> None:
    generation = [1]

    def read(path: str) -> Any:
        found = state_files.load(path)
        if path.endswith(".pdparams") and generation[0] < 4:
            generation[0] += 1
            save(stem, generation[0])
        return found

    first, second = generations.load(str(stem), read)
    assert first["generation"] == second["generation"] == 4


def test_the_state_of_an_optimizer_that_is_not_asked_for_is_not_read(stem: Path) -> None:
    os.unlink(f"{stem}.pdopt")
    assert generations.load(str(stem), state_files.load)[1] is None
    save(stem, 2)
    Path(f"{stem}.pdopt").write_bytes(b"damaged")
    assert generations.load(str(stem), state_files.load, with_second=False)[1] is None


# ---- processes that are killed -------------------------------------------------------------------------------------
SAVING = """
    import sys
    import dy2st as paddle
    network = paddle.nn.Linear(300, 300)
    model = paddle.Model(network)
    rates = paddle.optimizer.lr.StepDecay(0.1, 10)
    model.prepare(paddle.optimizer.Adam(rates, parameters=model.parameters()), paddle.nn.MSELoss())
    x = paddle.ones([2, 300])
    while True:
        model.train_batch(x, x)
        rates.step()
        network.weight.set_value(paddle.full([300, 300], float(rates.last_epoch)))
        model.save(sys.argv[1])
        print("saved", flush=True)
"""


def killed_after(stem: Path, seconds: float) -> None:
    """Let a process save again and again, and kill it some time after its first save."""
    script = textwrap.dedent(SAVING)
    process = subprocess.Popen([sys.executable, "-c", script, str(stem)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        while process.stdout.readline() != "saved\n":
            assert process.poll() is None
        time.sleep(seconds)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        process.stdout.close()  # type: ignore[union-attr]


def loaded_generation(stem: Path) -> tuple[float, float]:
    network = paddle.nn.Linear(300, 300)
    model = paddle.Model(network)
    rates = paddle.optimizer.lr.StepDecay(0.1, 10)
    model.prepare(paddle.optimizer.Adam(rates, parameters=model.parameters()), paddle.nn.MSELoss())
    model.load(str(stem))
    return float(network.weight.max()), float(rates.last_epoch)


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, pytest.param(30, marks=pytest.mark.soak)])
def test_a_model_whose_process_is_killed_is_loaded_of_one_save(tmp_path: Path, count: int) -> None:
    for turn in range(count):
        killed_after(tmp_path / "m", 0.002 * turn)
        of_weights, of_optimizer = loaded_generation(tmp_path / "m")
        assert of_weights == of_optimizer
