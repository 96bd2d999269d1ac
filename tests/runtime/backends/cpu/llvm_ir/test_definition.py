"""Definitions are gathered once each, after what they need."""

from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition, exported, gathered


def test_needs_come_first_and_once():
    leaf = Definition("leaf", "L")
    left, right = Definition("left", "A", (leaf,)), Definition("right", "B", (leaf, leaf))
    assert gathered([Definition("top", "T", (left, right)), leaf]).split("\n") == ["L", "A", "B", "T"]


def test_nothing_gathers_to_nothing():
    assert gathered([]) == ""


def test_what_another_module_has_is_declared_without_its_needs():
    inner = Definition("inner", "define internal void @inner() {...}")
    callee = Definition("callee", "define internal i64 @callee(ptr %a, i64 %b) nounwind {...}", (inner,))
    top = exported(Definition("top", "define internal void @top() {...}", (callee,)))
    assert gathered([top], elsewhere={"callee"}) == "declare i64 @callee(ptr %a, i64 %b)\ndefine void @top() {...}"
