"""What becomes of a loaded file does not reach what was loaded from it; what a file is not is said at once."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import FileFormatError
from dy2st.files import atomic, plain_safetensors, regular, state_files

MANY = np.arange(100_000, dtype="float32")


def changed_in_place(path: Path, change: str) -> None:
    """Change a file as `truncate` and `cp` do: it stays the same file."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        if change == "cut":
            file.truncate(16)
        else:
            file.seek(size // 8)
            file.write(b"\x40" * (size - size // 8))


@pytest.mark.parametrize("change", ["cut", "copied over"])
@pytest.mark.parametrize("kind", ["state", "plain"])
def test_what_becomes_of_a_state_file_does_not_reach_the_tensors(tmp_path: Path, kind: str, change: str) -> None:
    path = tmp_path / ("s.safetensors" if kind == "plain" else "s.pdparams")
    paddle.save({"w": paddle.to_tensor(MANY)}, str(path))
    found = paddle.load(str(path))["w"]
    changed_in_place(path, change)
    assert np.array_equal(found.numpy(), MANY)  # a mapped file would end the process here


@pytest.mark.parametrize("change", ["cut", "copied over"])
def test_what_becomes_of_a_program_file_does_not_reach_the_layer(tmp_path: Path, change: str) -> None:
    layer = paddle.nn.Linear(200, 100)
    path = paddle.jit.save(layer, tmp_path / "m", input_spec=[paddle.static.InputSpec([None, 200])])
    x = paddle.ones([3, 200])
    loaded, want = paddle.jit.load(path), layer(x).numpy()
    changed_in_place(path, change)
    for _ in range(4):
        np.testing.assert_allclose(loaded(x).numpy(), want, rtol=1e-5)


def test_a_file_that_is_cut_while_it_is_read_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state_files.save({"w": MANY}, tmp_path / "s")

    def entries(*given: object) -> object:
        changed_in_place(tmp_path / "s", "cut")
        return found(*given)

    found = state_files.safetensors_io.entries_of
    monkeypatch.setattr(state_files.safetensors_io, "entries_of", entries)
    with pytest.raises(FileFormatError, match="the file was cut short while it was read"):
        state_files.load(tmp_path / "s")


def test_the_checksum_is_that_of_what_was_written_though_somebody_writes_to_the_array(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_out(data: np.ndarray, out: object, digest: object) -> None:
        data += 1.0  # between the header and the data
        as_written(data, out, digest)

    as_written = state_files.safetensors_io._write_out
    monkeypatch.setattr(state_files.safetensors_io, "_write_out", write_out)
    state_files.save({"w": np.zeros(2_000_000, "float32")}, tmp_path / "s")
    assert state_files.load(tmp_path / "s")["w"].tolist() == [1.0] * 2_000_000


# ---- what is no file -----------------------------------------------------------------------------------------------
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
@pytest.mark.parametrize("load", [paddle.load, paddle.jit.load, plain_safetensors.load])
def test_a_pipe_is_not_waited_for(tmp_path: Path, load: object) -> None:
    os.mkfifo(tmp_path / "m.dy2st")
    with pytest.raises(FileFormatError, match=r"m\.dy2st: it is a pipe or a device"):
        load(tmp_path / "m.dy2st")  # type: ignore[operator]


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        paddle.load(str(tmp_path))


def test_a_file_that_no_memory_holds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state_files.save({"w": MANY}, tmp_path / "s")
    monkeypatch.setattr(regular, "memory_of_machine", lambda: 1000)
    with pytest.raises(FileFormatError, match=r"it has \d+ bytes, this machine's memory 1000"):
        state_files.load(tmp_path / "s")


def test_a_file_of_holes_is_refused_at_once(tmp_path: Path) -> None:
    size = 1 << 43
    header = f'{{"w":{{"dtype":"U8","shape":[{size}],"data_offsets":[0,{size}]}}}}'.encode()
    with (tmp_path / "s.safetensors").open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        try:
            file.truncate(8 + len(header) + size)
        except OSError:
            pytest.skip("this file system has no such large files")
    began = time.monotonic()
    with pytest.raises(FileFormatError, match="this machine's memory"):
        paddle.load(str(tmp_path / "s.safetensors"))
    assert time.monotonic() - began < 1


# ---- what killed processes leave -----------------------------------------------------------------------------------
KILLED = """
    import os, signal, sys
    import numpy as np
    from dy2st.files import atomic
    with atomic.replacing(sys.argv[1]) as out:
        out.write(b"half")
        out.flush()
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_what_a_killed_process_left_goes_with_the_next_one_that_writes(tmp_path: Path) -> None:
    path = tmp_path / "s.pdparams"
    state_files.save({"w": MANY}, path)
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), str(path)], timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 2
    assert np.array_equal(state_files.load(path)["w"], MANY)
    state_files.save({"w": MANY + 1}, path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(atomic.fcntl is None, reason="files have no locks here")
def test_what_another_process_is_writing_stays(tmp_path: Path) -> None:
    with atomic.replacing(tmp_path / "s") as out:
        out.write(b"first")
        atomic.replace(tmp_path / "s", [b"second"])
        assert (tmp_path / "s").read_bytes() == b"second"
    assert (tmp_path / "s").read_bytes() == b"first"
    assert len(list(tmp_path.iterdir())) == 1


def test_files_of_others_that_look_alike_stay(tmp_path: Path) -> None:
    for name in (".s.tmp", ".s.backup.tmp", ".s.0123456789abcdef.tmp.txt", ".other.0123456789abcdef.tmp"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / ".s.0123456789abcdef.tmp").symlink_to(tmp_path / ".s.tmp")
    before = set(tmp_path.iterdir())
    atomic.replace(tmp_path / "s", [b"x"])
    assert set(tmp_path.iterdir()) == {*before, tmp_path / "s"}
