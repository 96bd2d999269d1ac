"""Object files put together to images: what they may hold, and what is left to LLVM's loader."""

import ctypes
import os
import platform
import sys

import pytest

from dy2st.runtime.aot_cache.code_image import NotLinkable
from dy2st.runtime.backends.cpu.compile_link import code_loader, elf_linker, image_loader
from dy2st.runtime.backends.cpu.compile_link.code_loader import compile_object, linked, load, provide
from dy2st.runtime.backends.cpu.compile_link.elf_linker import link
from dy2st.runtime.backends.cpu.compile_link.image_loader import libc_address
from dy2st.runtime.backends.cpu.compile_link.target import current_target

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="images are made of ELF for x86-64"
)

CALLEE = "define i64 @twice(i64 %x) {\n  %y = add i64 %x, %x\n  ret i64 %y\n}"
CALLER = """
declare i64 @twice(i64)
define i64 @four_times(i64 %x) {
  %a = call i64 @twice(i64 %x)
  %b = call i64 @twice(i64 %a)
  ret i64 %b
}"""
CONSTANTS = """
@table = internal constant [4 x double] [double 1.5, double 2.5, double 3.5, double 4.5]
define double @entry(i64 %i) {
  %p = getelementptr double, ptr @table, i64 %i
  %x = load double, ptr %p
  %y = fadd double %x, 100.25
  ret double %y
}"""
STATE = """
@count = internal global i64 0
@first = internal global i64 40
define i64 @next() {
  %n = load i64, ptr @count
  %m = add i64 %n, 1
  store i64 %m, ptr @count
  %f = load i64, ptr @first
  %r = add i64 %f, %m
  ret i64 %r
}"""
POINTERS = """
define internal i64 @add1(i64 %x) {
  %y = add i64 %x, 1
  ret i64 %y
}
define internal i64 @add2(i64 %x) {
  %y = add i64 %x, 2
  ret i64 %y
}
@functions = internal constant [2 x ptr] [ptr @add1, ptr @add2]
define i64 @choose(i64 %i, i64 %x) {
  %p = getelementptr ptr, ptr @functions, i64 %i
  %f = load ptr, ptr %p
  %y = call i64 %f(i64 %x)
  ret i64 %y
}"""
OUTSIDE = """
declare i32 @abs(i32)
declare i32 @dy2st.test.of_mine(i32)
define i32 @both(i32 %x) {
  %a = call i32 @abs(i32 %x)
  %b = call i32 @dy2st.test.of_mine(i32 %a)
  ret i32 %b
}
define ptr @pointer() {
  ret ptr @abs
}"""
CONSTRUCTED = """
@run = constant ptr @start, section ".init_array"
define void @start() {
  ret void
}"""
SOMEBODYS_DATA = "@x = external dso_local global i64\ndefine i64 @f() {\n  %v = load i64, ptr @x\n  ret i64 %v\n}"
THREAD_LOCAL = "@x = thread_local global i64 0\ndefine ptr @place() {\n  ret ptr @x\n}"


def compiled(text, level=1):
    return compile_object(text, current_target(), level)


def called(code, name, *arguments, result=ctypes.c_int64):
    return ctypes.CFUNCTYPE(result, *[ctypes.c_int64] * len(arguments))(code.address(name))(*arguments)


@pytest.mark.parametrize("level", [0, 1])
def test_objects_call_each_other_whichever_comes_first(level):
    objects = [compiled(CALLEE, level), compiled(CALLER, level)]
    assert called(load(link(objects)), "four_times", 5) == 20
    assert called(load(link(objects[::-1])), "four_times", 6) == 24


def test_constants_stand_where_code_looks_for_them():
    code = load(link([compiled(CALLEE), compiled(CONSTANTS)]))
    assert [called(code, "entry", i, result=ctypes.c_double) for i in range(4)] == [101.75, 102.75, 103.75, 104.75]


def test_data_can_be_written_and_each_image_has_its_own():
    image = link([compiled(STATE)])
    one, other = load(image), load(image)
    assert [called(one, "next") for _ in range(3)] == [41, 42, 43]
    assert called(other, "next") == 41


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_writes_into_data_of_its_own():
    code = load(link([compiled(STATE)]))
    called(code, "next")
    child = os.fork()
    if not child:
        called(code, "next")
        os._exit(called(code, "next"))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 43
    assert called(code, "next") == 42


def test_addresses_in_data():
    code = load(link([compiled(POINTERS)]))
    assert (called(code, "choose", 0, 10), called(code, "choose", 1, 10)) == (11, 12)


def test_functions_of_others(monkeypatch):
    monkeypatch.setattr(code_loader, "_provided", {})
    given = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(lambda x: x + 100)
    provide("dy2st.test.of_mine", lambda: ctypes.cast(given, ctypes.c_void_p).value)
    code = load(link([compiled(OUTSIDE)]))
    assert called(code, "both", -7, result=ctypes.c_int32) == 107
    assert called(code, "pointer", result=ctypes.c_void_p) == libc_address("abs")


def test_a_function_that_nobody_has_is_an_error_before_anything_runs():
    image = link(
        [compiled("declare void @dy2st.nobody()\ndefine void @f() {\n  call void @dy2st.nobody()\n  ret void\n}")]
    )
    with pytest.raises(KeyError, match="nobody"):
        load(image)


def test_a_name_that_the_code_has_not():
    with pytest.raises(KeyError, match="thrice"):
        load(link([compiled(CALLEE)])).address("thrice")


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        (lambda: [compiled(CALLEE), compiled(CALLEE)], "twice is defined twice"),
        (lambda: [compiled(THREAD_LOCAL)], r"relocation \d+$"),
        (lambda: [compiled(SOMEBODYS_DATA)], r"relocation \d+ of x"),
        (lambda: [compiled(CONSTRUCTED)], "section .init_array"),
        (lambda: [b"something else"], "no object file of ELF for x86-64"),
        (lambda: [compiled(CALLEE)[:18] + b"\xb7\0" + compiled(CALLEE)[20:]], "for x86-64"),  # says AArch64
    ],
)
def test_what_an_image_cannot_hold(objects, said):
    with pytest.raises(NotLinkable, match=said):
        link(objects())


def test_llvm_loads_what_no_image_can_be_made_of(monkeypatch):
    def refuse(objects):
        raise NotLinkable

    monkeypatch.setattr(elf_linker, "link", refuse)
    assert called(load(linked([compiled(CALLEE), compiled(CALLER)])), "four_times", 3) == 12
    with pytest.raises(KeyError, match="thrice"):
        load(linked([compiled(CALLEE)])).address("thrice")


@pytest.mark.parametrize("call", ["mmap", "mprotect"])
def test_memory_that_the_system_does_not_give(monkeypatch, call):
    class Refusing:
        def __init__(self, libc):
            self.libc = libc

        def __getattr__(self, name):
            refused = ctypes.c_void_p(-1).value if name == "mmap" else -1
            return (lambda *_: refused) if name == call else getattr(self.libc, name)

    refusing = Refusing(image_loader._libc())
    monkeypatch.setattr(image_loader, "_libc", lambda: refusing)
    with pytest.raises(OSError, match="no memory for code"):
        load(link([compiled(CALLEE)]))


@pytest.mark.parametrize("text", ["define nonsense", "define i32 @f() {\n  %x = add i64 1, 2\n  ret i32 %x\n}"])
def test_text_that_is_wrong_is_refused(text):
    with pytest.raises(RuntimeError, match="LLVM IR parsing error"):
        compiled(text)
