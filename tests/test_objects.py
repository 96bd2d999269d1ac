"""Object files of earlier runs (tests/objects.py)."""

from pathlib import Path

import pytest

from dy2st.runtime.backends.cpu.compile_link.compiler import compiled
from dy2st.runtime.backends.cpu.compile_link.target import host_target
from tests.in_threads import in_threads
from tests.objects import Objects

TEXT = "define i64 @f(i64 %x) {\n  ret i64 %x\n}"
MACHINE = host_target().machine(1)


class Counted:
    """LLVM, and how often it was asked."""

    def __init__(self) -> None:
        self.times = 0

    def compiled(self, *operands: object, **keywords: object) -> bytes:
        self.times += 1
        return compiled(*operands, **keywords)  # type: ignore[arg-type]


@pytest.fixture
def llvm() -> Counted:
    return Counted()


@pytest.fixture
def objects(tmp_path: Path, llvm: Counted) -> Objects:
    return Objects(tmp_path, llvm.compiled)


def test_the_same_text_is_compiled_once(objects: Objects, llvm: Counted) -> None:
    found = [objects.compiled(TEXT, MACHINE, ()) for _ in range(2)]
    assert found == [compiled(TEXT, MACHINE, ())] * 2
    assert llvm.times == 1


def test_other_passes_another_machine_and_assembly_language_are_compiled(objects: Objects, llvm: Counted) -> None:
    objects.compiled(TEXT, MACHINE, ())
    objects.compiled(TEXT, MACHINE, ("SROA",))
    objects.compiled(TEXT, host_target().machine(0), ())
    assert b"ret" in objects.compiled(TEXT, MACHINE, (), readable=True)
    assert llvm.times == 4


def test_a_broken_file_is_made_again(objects: Objects, llvm: Counted, tmp_path: Path) -> None:
    wanted = objects.compiled(TEXT, MACHINE, ())
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-3])
    assert objects.compiled(TEXT, MACHINE, ()) == objects.compiled(TEXT, MACHINE, ()) == wanted
    assert llvm.times == 2


def test_of_a_text_that_is_wrong_nothing_is_kept(objects: Objects, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="LLVM IR parsing error"):
        objects.compiled("define i64", MACHINE, ())
    assert not list(tmp_path.iterdir())


def test_where_nothing_can_be_written_all_is_compiled(llvm: Counted, tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    objects = Objects(tmp_path / "a file" / "folder", llvm.compiled)
    assert objects.compiled(TEXT, MACHINE, ()) == objects.compiled(TEXT, MACHINE, ())
    objects.shrink()
    assert llvm.times == 2


def test_too_much_is_removed(objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects.compiled(TEXT, MACHINE, ())
    objects.shrink()
    assert len(list(tmp_path.iterdir())) == 1
    monkeypatch.setattr("tests.objects.MOST_BYTES", 10)
    objects.shrink()
    assert not list(tmp_path.iterdir())


def test_threads_keep_the_same_object_at_once(objects: Objects, tmp_path: Path) -> None:
    found: list[bytes] = []
    in_threads(*[lambda: found.append(objects.compiled(TEXT, MACHINE, ()))] * 4)
    assert found == [compiled(TEXT, MACHINE, ())] * 4
    assert len(list(tmp_path.iterdir())) == 1
