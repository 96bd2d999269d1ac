"""The folder of kept code: what is in it is run, so it is this user's alone; whatever stands there, calls go on."""

import itertools
import os
import time

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.aot_cache import disk_cache, trust


@pytest.fixture
def folder(tmp_path, monkeypatch):
    at = tmp_path / "kept"
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(at))
    monkeypatch.setattr(trust, "_warned", set())
    return at


def test_a_file_under_the_name_of_another_is_not_taken(folder):
    for key in ("one", "other"):
        disk_cache.write(key, key.encode())
    (folder / "other.o").replace(folder / "one.o")
    assert disk_cache.read("one") is None
    disk_cache.write("one", b"one")
    assert disk_cache.read("one") == b"one"


@pytest.mark.parametrize(("mode", "who"), [(0o770, "its group"), (0o775, "its group"), (0o702, "everybody")])
def test_a_folder_that_others_may_write_to_is_not_used(folder, mode, who):
    disk_cache.write("key", b"content")
    assert disk_cache.read("key") == b"content"
    folder.chmod(mode)
    with pytest.warns(RuntimeWarning, match=f"kept is not used to keep code: {who} may write to it, and what is in it"):
        assert disk_cache.read("key") is None
    assert disk_cache.read("key") is None  # warned once
    disk_cache.write("other", b"content")
    assert [f.name for f in folder.iterdir()] == ["key.o"]


def test_a_folder_of_another_user_is_not_used(folder, monkeypatch):
    disk_cache.write("key", b"content")
    me = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: me + 1000)
    if me == 0:  # whom everybody trusts
        os.chown(folder, 1, -1)
    with pytest.warns(RuntimeWarning, match="it belongs to another user"):
        assert disk_cache.read("key") is None


@pytest.mark.parametrize(("mode", "who"), [(0o620, "its group"), (0o602, "everybody")])
def test_a_file_that_others_may_write_to_is_not_run(folder, mode, who):
    disk_cache.write("key", b"content")
    (folder / "key.o").chmod(mode)
    with pytest.warns(RuntimeWarning, match=f"key.o is not run: {who} may write to it"):
        assert disk_cache.read("key") is None
    assert disk_cache.read("key") is None
    disk_cache.write("key", b"content")
    assert disk_cache.read("key") == b"content"


def test_a_folder_is_made_for_its_owner_alone(folder):
    before = os.umask(0)
    try:
        disk_cache.write("key", b"content")
    finally:
        os.umask(before)
    assert (folder.stat().st_mode & 0o777, (folder / "key.o").stat().st_mode & 0o777) == (0o700, 0o600)


def test_a_link_is_not_followed_to_a_file_but_to_a_folder(folder, tmp_path, monkeypatch):
    disk_cache.write("key", b"content")
    (folder / "key.o").rename(tmp_path / "elsewhere.o")
    (folder / "key.o").symlink_to(tmp_path / "elsewhere.o")
    assert disk_cache.read("key") is None
    disk_cache.write("key", b"content")
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(tmp_path / "link"))
    assert disk_cache.read("key") == b"content"
    folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="everybody may write to it"):
        assert disk_cache.read("key") is None


def test_a_pipe_in_the_folder_is_not_waited_for(folder):
    folder.mkdir(mode=0o700)
    os.mkfifo(folder / "key.o")
    assert disk_cache.read("key") is None
    disk_cache.write("key", b"content")
    assert disk_cache.read("key") == b"content"
    os.mkfifo(folder / "other.o")
    disk_cache.shrink(str(folder), 0)


def test_a_file_of_holes_is_not_read_and_costs_no_other_file(folder):
    disk_cache.write("key", b"content")
    os.truncate(folder / "key.o", 1 << 40)
    began = time.monotonic()
    assert disk_cache.read("key") is None
    assert time.monotonic() - began < 1
    disk_cache.write("other", b"content")
    disk_cache.shrink(str(folder), 2**30)
    assert [f.name for f in folder.iterdir()] == ["other.o"]


def test_what_is_larger_than_any_file_is_not_kept(folder, monkeypatch):
    monkeypatch.setattr(trust, "MOST_BYTES", 100)
    disk_cache.write("key", bytes(100))
    assert not folder.exists()


def test_functions_run_without_a_folder_that_can_be_used(folder, rng):
    folder.mkdir()
    folder.chmod(0o777)
    static = paddle.jit.to_static(lambda x: paddle.exp(x) * 2 + x.sum())
    x = paddle.to_tensor(rng.normal(size=(5, 7)))
    with pytest.warns(RuntimeWarning, match="everybody may write to it") as caught:
        found = [static(x).numpy() for _ in range(4)]
    assert len(caught) == 1
    for one in found:
        np.testing.assert_allclose(one, np.exp(x.numpy()) * 2 + x.numpy().sum())
    assert not list(folder.iterdir())


def test_a_folder_that_cannot_be_written_to_is_read(folder):
    disk_cache.write("key", b"content")
    folder.chmod(0o500)
    try:
        disk_cache.write("other", b"content")
        assert disk_cache.read("key") == b"content"
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize("damage", [b"", b"short", b"\0" * 32, b"\0" * 50])
def test_damaged_files_are_not_read(folder, damage):
    disk_cache.write("key", b"content")
    (folder / "key.o").write_bytes(damage)
    assert disk_cache.read("key") is None


def test_a_folder_in_the_place_of_a_file_is_not_read(folder):
    (folder / "key.o").mkdir(parents=True)
    assert disk_cache.read("key") is None
    disk_cache.write("key", b"content")
    assert not list(folder.glob("*.part"))


def test_the_files_that_were_not_used_for_longest_go(folder):
    now = time.time()
    for i in range(10):
        disk_cache.write(f"k{i}", bytes(968))  # 1000 with the hash
        os.utime(folder / f"k{i}.o", (now - 10_000 + i, now - 10_000 + i))
    assert disk_cache.read("k0") is not None  # used now
    disk_cache.shrink(str(folder), 6000)
    assert {f.stem for f in folder.iterdir()} == {"k0", "k7", "k8", "k9"}
    disk_cache.shrink(str(folder), 4000)
    assert len(list(folder.iterdir())) == 4


def test_what_a_process_that_died_left_behind_goes(folder, monkeypatch):
    disk_cache.write("key", b"content")
    for name, age in (("old.part", 7200), ("new.part", 0)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (time.time() - age, time.time() - age))
    monkeypatch.setattr(disk_cache, "_written", itertools.count())
    disk_cache.write("key", b"the first that a process writes")
    assert {f.name for f in folder.iterdir()} == {"key.o", "new.part"}


def test_the_size_of_the_folder_is_bounded(folder, monkeypatch):
    monkeypatch.setenv("DY2ST_CACHE_SIZE", "5000")
    monkeypatch.setattr(disk_cache, "_LOOK_EVERY", 1)
    for i in range(20):
        disk_cache.write(f"k{i}", bytes(1000))
    assert sum(f.stat().st_size for f in folder.iterdir()) <= 5000
    assert (folder / "k19.o").exists()


@pytest.mark.parametrize("text", ["1G", "²", "-1", "1e9", "9" * 5000, "0x10"])
def test_a_size_that_is_no_number_is_told_of_once(folder, monkeypatch, text):
    monkeypatch.setenv("DY2ST_CACHE_SIZE", text)
    with pytest.warns(RuntimeWarning, match="DY2ST_CACHE_SIZE is a number of bytes, not .*: 1073741824 are taken"):
        assert disk_cache.most_bytes() == 2**30
    monkeypatch.setattr(disk_cache, "_LOOK_EVERY", 1)
    disk_cache.write("key", b"content")
    assert disk_cache.read("key") == b"content"


def test_the_folder_is_in_the_home_of_the_user(monkeypatch):
    monkeypatch.delenv("DY2ST_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert disk_cache.folder() == "/home/somebody/.cache/dy2st"
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert disk_cache.folder() == "/elsewhere/dy2st"
