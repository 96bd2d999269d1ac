"""What is read of bytecode directly is what `dis` says."""

import dis
import json
import types

import pytest

from dy2st.runtime.tracer.effects.code_names import does, names_of

GLOBALS = "a = 1\ndef f():\n    global a, b\n    a = b = len(str(a))\n    del b\n    return [c for c in a]\n"


def nested(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from nested(const)


def many_names():
    """Names of which there are so many that an instruction takes two bytes for one."""
    return compile("def f():\n    return " + " + ".join(f"name{i}" for i in range(400)), "<many>", "exec")


def codes():
    with open(json.decoder.__file__, encoding="utf-8") as file:
        text = file.read()
    return [c for whole in (compile(GLOBALS, "<globals>", "exec"), many_names(), compile(text, "j", "exec"))
            for c in nested(whole)]  # fmt: skip


@pytest.mark.parametrize("names", [("LOAD_GLOBAL", "LOAD_NAME"), ("STORE_GLOBAL", "DELETE_GLOBAL"), ("LOAD_GLOBAL",)])
def test_names_are_those_of_dis(names):
    found = [list(names_of(code, *names)) for code in codes()]
    assert found == [[i.argval for i in dis.get_instructions(code) if i.opname in names] for code in codes()]
    assert any(found)


@pytest.mark.parametrize("name", ["STORE_DEREF", "STORE_GLOBAL", "LOAD_GLOBAL", "DELETE_DEREF"])
def test_what_a_function_does_is_what_dis_says(name):
    wanted = [any(i.opname == name for i in dis.get_instructions(code)) for code in codes()]
    assert [does(code, name) for code in codes()] == wanted
