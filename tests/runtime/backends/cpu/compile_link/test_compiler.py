"""LLVM, called as it is: what it gives for text that is right and wrong, in one thread and in several."""

from functools import partial

import pytest

from dy2st.records import replace
from dy2st.runtime.backends.cpu.compile_link import compiler
from dy2st.runtime.backends.cpu.compile_link.compiler import compiled, host, version
from dy2st.runtime.backends.cpu.compile_link.target import host_target
from tests.in_threads import in_threads

TEXT = "define i32 @f(i32 %x) {{\n  %y = add i32 %x, {}\n  ret i32 %y\n}}\n"
MACHINE = host_target().machine(0)


@pytest.fixture(autouse=True)
def machines(monkeypatch):
    made = []
    make = compiler._made
    monkeypatch.setattr(compiler, "_free", {})
    monkeypatch.setattr(compiler, "_made", lambda lib, wanted: made.append(wanted) or make(lib, wanted))
    return made


def test_text_becomes_the_same_object_file_again_by_the_same_machine(machines):
    first, other, again = (compiled(TEXT.format(n), MACHINE, ()) for n in (1, 2, 1))
    assert first == again != other
    assert machines == [MACHINE]


def test_another_level_has_a_machine_of_its_own(machines):
    better = replace(MACHINE, level=1)
    for machine in (MACHINE, better, MACHINE, better):
        compiled(TEXT.format(1), machine, ("AlwaysInliner", "SROA", "SimplifyCFG", "InstCombine"))
    assert machines == [MACHINE, better]


def test_assembly_language_can_be_read():
    assert b"f:" in compiled(TEXT.format(1), MACHINE, (), readable=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("define i32 @f(", "LLVM IR parsing error"),
        ("define i32 @f(i32 %x) {\n  %y = add i32 %y, 1\n  ret i32 %y\n}\n", "Only PHI nodes may reference"),
    ],
)
def test_wrong_text_is_an_error_and_the_next_one_is_compiled(text, message, machines):
    for _ in range(2):
        with pytest.raises(RuntimeError, match=message):
            compiled(text, MACHINE, ())
    assert compiled(TEXT.format(1), MACHINE, ())
    assert machines == [MACHINE] * 3


def test_no_code_is_made_for_a_system_that_there_is_not():
    with pytest.raises(RuntimeError, match="no-such-system"):
        compiled(TEXT.format(1), replace(MACHINE, triple="no-such-system"), ())


def test_threads_compile_at_once_and_get_what_one_alone_gets():
    alone = [compiled(TEXT.format(n), MACHINE, ()) for n in range(8)]
    found = {}

    def work(first):
        for n in (*range(first, 8), *range(first)):
            found[first, n] = compiled(TEXT.format(n), MACHINE, ())

    in_threads(*(partial(work, first) for first in range(8)))
    assert all(found[first, n] == alone[n] for first in range(8) for n in range(8))


def test_what_the_host_is():
    triple, cpu, features = host()
    assert triple
    assert cpu
    assert set(map(type, features.values())) <= {bool}
    assert version() > 0
