"""The folder of what is kept: what is in it is run, so it is this user's alone; whatever stands there, calls go on.

Each kind of what is kept is looked at, with a value of its own.
"""

import itertools
import logging
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st
import dy2st as paddle
from dy2st.ir.binary import places_of
from dy2st.ir.parser import parse
from dy2st.jit.tracing import conversion_cache
from dy2st.runtime.aot_cache import artifacts, bytecode_cache, disk_cache, program_artifacts, trust
from dy2st.runtime.aot_cache.artifacts import Artifact
from dy2st.runtime.aot_cache.code_image import CodeImage
from dy2st.runtime.aot_cache.disk_cache import Kind
from dy2st.runtime.backends.cpu.compile_link import code_loader, function_cache
from dy2st.runtime.backends.cpu.python_abi import prefault
from dy2st.runtime.backends.cuda import target
from dy2st.runtime.tracer.loops import loop_state_cache
from dy2st.transformers.conversion import conversion_of


@dataclass(frozen=True)
class Sample:
    """A value of a kind, and what is handed on to what reads and writes it."""

    kind: Kind[Any]
    value: Any
    context: Sequence[Any] = ()

    def write(self, key: str) -> None:
        self.kind.write(key, self.value, *self.context)

    def is_kept(self, key: str) -> bool:
        return self.kind.read(key, *self.context) is not None


def function(x):
    return x + 1


PROGRAM = parse("program main\nfunc main(%x: float32[N]) {\n  %y: float32[N] = exp(%x)\n  return %y\n}\n")
PLACES = places_of(PROGRAM)
SAMPLES = [
    Sample(artifacts._ARTIFACTS, Artifact(CodeImage(b"code", 0, {"f": 0}, {}, []), {"n": 1}, [np.ones(3)])),
    Sample(bytecode_cache._CODE, compile("x = 1", "<a test>", "exec")),
    Sample(program_artifacts._DERIVED, ([PROGRAM], (3,)), [lambda: PLACES]),
    Sample(program_artifacts._FINGERPRINTS, "a fingerprint"),
    Sample(program_artifacts._ANSWERS, (3,)),
    Sample(loop_state_cache._LOOPS, ([(0, ("same",))], 0, 0)),
    Sample(conversion_cache._CONVERSIONS, conversion_of(function), [function]),
    Sample(prefault._NEEDS, (4096, [1 << 20])),
    Sample(function_cache._BATCHES, function_cache.ObjectFile(b"code", {"f": "key"})),
    Sample(function_cache._PLACES, "a batch"),
    Sample(code_loader._OBJECTS, b"content"),
    Sample(target._TEXTS, "a text"),
]


@pytest.fixture(params=SAMPLES, ids=lambda sample: sample.kind.name)
def kept(request):
    return request.param


@pytest.fixture
def folder(tmp_path, monkeypatch):
    at = tmp_path / "kept"
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(at))
    monkeypatch.setattr(trust, "_warned", set())
    return at


def test_a_file_under_the_name_of_another_is_not_taken(folder, kept):
    for key in ("one", "other"):
        kept.write(key)
    (folder / "other.o").replace(folder / "one.o")
    assert not kept.is_kept("one")
    kept.write("one")
    assert kept.is_kept("one")


@pytest.mark.parametrize(("mode", "who"), [(0o770, "its group"), (0o775, "its group"), (0o702, "everybody")])
def test_a_folder_that_others_may_write_to_is_not_used(folder, kept, mode, who):
    kept.write("key")
    assert kept.is_kept("key")
    folder.chmod(mode)
    with pytest.warns(RuntimeWarning, match=f"kept is not used to keep code: {who} may write to it, and what is in it"):
        assert not kept.is_kept("key")
    assert not kept.is_kept("key")  # warned once
    kept.write("other")
    assert [f.name for f in folder.iterdir()] == ["key.o"]


def test_a_folder_of_another_user_is_not_used(folder, kept, monkeypatch):
    kept.write("key")
    me = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: me + 1000)
    if me == 0:  # whom everybody trusts
        os.chown(folder, 1, -1)
    with pytest.warns(RuntimeWarning, match="it belongs to another user"):
        assert not kept.is_kept("key")


@pytest.mark.parametrize(("mode", "who"), [(0o620, "its group"), (0o602, "everybody")])
def test_a_file_that_others_may_write_to_is_not_run(folder, kept, mode, who):
    kept.write("key")
    (folder / "key.o").chmod(mode)
    with pytest.warns(RuntimeWarning, match=f"key.o is not run: {who} may write to it"):
        assert not kept.is_kept("key")
    assert not kept.is_kept("key")
    kept.write("key")
    assert kept.is_kept("key")


def test_a_folder_is_made_for_its_owner_alone(folder, kept):
    before = os.umask(0)
    try:
        kept.write("key")
    finally:
        os.umask(before)
    assert (folder.stat().st_mode & 0o777, (folder / "key.o").stat().st_mode & 0o777) == (0o700, 0o600)


def test_a_link_is_not_followed_to_a_file_but_to_a_folder(folder, kept, tmp_path, monkeypatch):
    kept.write("key")
    (folder / "key.o").rename(tmp_path / "elsewhere.o")
    (folder / "key.o").symlink_to(tmp_path / "elsewhere.o")
    assert not kept.is_kept("key")
    kept.write("key")
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(tmp_path / "link"))
    assert kept.is_kept("key")
    folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="everybody may write to it"):
        assert not kept.is_kept("key")


def test_a_pipe_in_the_folder_is_not_waited_for(folder, kept):
    folder.mkdir(mode=0o700)
    os.mkfifo(folder / "key.o")
    assert not kept.is_kept("key")
    kept.write("key")
    assert kept.is_kept("key")
    os.mkfifo(folder / "other.o")
    disk_cache.shrink(str(folder), 0)


def test_a_file_of_holes_is_not_read_and_costs_no_other_file(folder, kept):
    kept.write("key")
    os.truncate(folder / "key.o", 1 << 40)
    began = time.monotonic()
    assert not kept.is_kept("key")
    assert time.monotonic() - began < 1
    kept.write("other")
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


def test_a_folder_that_cannot_be_written_to_is_read(folder, kept):
    kept.write("key")
    folder.chmod(0o500)
    try:
        kept.write("other")
        assert kept.is_kept("key")
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize("damage", [b"", b"short", b"\0" * 32, b"\0" * 50])
def test_damaged_files_are_not_read(folder, kept, damage):
    kept.write("key")
    (folder / "key.o").write_bytes(damage)
    assert not kept.is_kept("key")


def test_a_folder_in_the_place_of_a_file_is_not_read(folder, kept):
    (folder / "key.o").mkdir(parents=True)
    assert not kept.is_kept("key")
    kept.write("key")
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


def test_what_a_process_that_died_left_behind_goes(folder, kept, monkeypatch):
    kept.write("key")
    for name, age in (("old.part", 7200), ("new.part", 0)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (time.time() - age, time.time() - age))
    monkeypatch.setattr(disk_cache, "_written", itertools.count())
    kept.write("key")
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


# ---- kinds ---------------------------------------------------------------------------------------------------------
def test_all_kinds_are_looked_at_and_have_names_of_their_own():
    source = Path(str(dy2st.__file__)).parent
    found = [
        name for file in source.rglob("*.py") for name in re.findall(r'disk_cache\.Kind\("(\w+)"', file.read_text())
    ]
    assert sorted(found) == sorted({sample.kind.name for sample in SAMPLES})


def test_a_key_says_the_kind_the_version_and_what_decides(kept, monkeypatch):
    key = kept.kind.key("a", 1)
    assert key.startswith(f"{kept.kind.name}-")
    others = [kept.kind.key("a", 2), kept.kind.key("a1"), kept.kind.key("a", 1, None), kept.kind.key("a", "1")]
    with monkeypatch.context() as changed:
        changed.setattr(disk_cache, "VERSION", disk_cache.VERSION + 1)
        others.append(kept.kind.key("a", 1))
    monkeypatch.setattr(kept.kind, "_decided_by", lambda: "another machine")
    others.append(kept.kind.key("a", 1))
    assert len({key, *others}) == 7


def test_what_was_written_is_read(folder, kept):
    key = kept.kind.key("a")
    assert not disk_cache.has(key)
    kept.write(key)
    assert [f.name for f in folder.iterdir()] == [f"{key}.o"]
    assert disk_cache.has(key)
    assert kept.kind.made(key, lambda: pytest.fail("it is kept"), *kept.context) is not None


@pytest.mark.parametrize("kept", [s for s in SAMPLES if s.kind.name != "object"], ids=lambda sample: sample.kind.name)
def test_what_cannot_be_read_is_removed_and_made_again_with_one_line(folder, kept, caplog):
    disk_cache.write("key", b"\xff")
    with caplog.at_level(logging.DEBUG, "dy2st.cache"):
        assert not kept.is_kept("key")
        assert not list(folder.iterdir())
        assert kept.kind.made("key", lambda: kept.value, *kept.context) is kept.value
    assert len(caplog.records) == 1
    assert caplog.records[0].getMessage().startswith("what is kept as key is made again: ")
    assert kept.is_kept("key")


@pytest.mark.parametrize("damage", ["cut", "changed", "open to its group", "of holes"])
def test_a_bad_file_is_removed(folder, kept, damage, caplog):
    kept.write("key")
    file = folder / "key.o"
    content = file.read_bytes()
    if damage == "cut":
        file.write_bytes(content[:-1])
    elif damage == "changed":
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "of holes":
        os.truncate(file, 1 << 40)
    else:
        file.chmod(0o660)
    with caplog.at_level(logging.DEBUG, "dy2st.cache"):
        if damage == "open to its group":
            with pytest.warns(RuntimeWarning, match="its group may write to it"):
                assert not kept.is_kept("key")
        else:
            assert not kept.is_kept("key")
    assert not file.exists()
    assert len(caplog.records) == 1


def test_without_a_folder_a_value_is_made_each_time(monkeypatch, kept):
    monkeypatch.setenv("DY2ST_CACHE_DIR", "")
    made = []
    for _ in range(2):
        kept.kind.made("key", lambda: made.append(1) or kept.value, *kept.context)
    assert made == [1, 1]
