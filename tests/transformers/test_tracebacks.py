"""What a user sees of a converted function is his own: file, line, columns, names."""

import importlib.util
import inspect
import traceback
from types import FunctionType
from typing import Any

import pytest

from dy2st import transformers
from tests.in_threads import in_threads
from tests.transformers.python_helper import PythonHelper


def made(fn: Any) -> Any:
    return transformers.convert(fn).make(PythonHelper())


def frames(fn: Any, *args: Any) -> list[traceback.FrameSummary]:
    with pytest.raises(ZeroDivisionError) as caught:
        fn(*args)
    here = __file__
    stack = traceback.extract_tb(caught.value.__traceback__)
    return [frame for frame in stack if frame.filename == here][2:]  # less this function and pytest's own


def divide_in_branch(x):
    if x >= 0:
        y = 1
        for i in range(3):
            y = y + i / x
    return y


def test_the_line_of_a_nested_body_is_the_users() -> None:
    converted = made(divide_in_branch)
    first = divide_in_branch.__code__.co_firstlineno
    with pytest.raises(ZeroDivisionError) as caught:
        converted(0)
    stack = [frame for frame in traceback.extract_tb(caught.value.__traceback__) if frame.filename == __file__][1:]
    assert [frame.lineno for frame in stack] == [first + 1, first + 3, first + 4]
    assert {frame.name for frame in stack} == {"divide_in_branch"}
    assert stack[-1].line == "y = y + i / x"
    assert (stack[-1].colno, stack[-1].end_colno) == (20, 25)


def code_objects(code: Any) -> list[Any]:
    inner = [code_objects(const) for const in code.co_consts if inspect.iscode(const)]
    return [code, *(one for many in inner for one in many)]


def users_names(x):
    def inner(y):
        return y and (lambda z: z or x)

    class Inner:
        def method(self):
            return [i for i in range(3) if i and x]

    if x:
        return inner, Inner
    return None


def test_generated_functions_have_the_users_names() -> None:
    code = transformers.convert(users_names).code
    base = "users_names"
    assert {one.co_qualname for one in code_objects(code)} == {
        base,
        f"{base}.<locals>.inner",
        f"{base}.<locals>.inner.<locals>.<lambda>",
        f"{base}.<locals>.Inner",
        f"{base}.<locals>.Inner.method",
    }
    assert {one.co_filename for one in code_objects(code)} == {__file__}
    assert all(transformers.is_converted_code(one) for one in code_objects(code))
    assert not transformers.is_converted_code(users_names.__code__)


def test_metadata_defaults_and_attributes_are_kept() -> None:
    def fn(a: int, b: "str" = "b", *, c: float = 1.0) -> bool:
        """Say it."""
        return bool(a and b and c)

    fn.tag = "kept"  # pyright: ignore[reportFunctionMemberAccess]
    got = made(fn)
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__defaults__", "__kwdefaults__", "tag"):
        assert getattr(got, name) == getattr(fn, name)
    assert inspect.signature(got) == inspect.signature(fn)
    assert got.__code__.co_firstlineno == fn.__code__.co_firstlineno
    assert got.__globals__ is fn.__globals__


def test_closure_cells_are_shared_both_ways() -> None:
    count = 0

    def add():
        nonlocal count
        if count >= 0:
            count += 1
        return count

    got = made(add)
    assert (got(), add(), got()) == (1, 2, 3)
    count = 10
    assert got() == 11
    assert count == 11


def test_conversion_is_cached_and_safe_in_threads() -> None:
    def fn(x):
        return x and 1

    found: list[Any] = []
    in_threads(*[lambda: found.append(transformers.convert(fn))] * 4)
    assert all(one is found[0] for one in found)


def test_two_functions_of_one_code_share_the_work_not_the_cells() -> None:
    def factory(k):
        def fn(x):
            return k if x else -k

        return fn

    one, two = factory(1), factory(2)
    first, second = transformers.convert(one), transformers.convert(two)
    assert first.code is second.code
    assert (first.make(PythonHelper())(1), second.make(PythonHelper())(0)) == (1, -2)


def test_make_needs_the_function() -> None:
    def fn(x):
        return x

    converted = transformers.convert(fn)
    copy = FunctionType(fn.__code__, fn.__globals__)
    del fn
    assert converted.make(PythonHelper(), copy)(3) == 3
    with pytest.raises(ReferenceError, match="is gone: pass it to make"):
        converted.make(PythonHelper())


def test_modules_are_looked_up_for_each_globals() -> None:
    def fn(x):
        return thing.sep + x  # noqa: F821

    class Thing:
        sep = "!"

    path = importlib.import_module("os.path")
    with_module = FunctionType(fn.__code__, {"thing": path})
    with_object = FunctionType(fn.__code__, {"thing": Thing})
    assert "thing.sep" in transformers.convert(with_module).source
    assert "'sep'" in transformers.convert(with_object).source
    assert transformers.convert(with_object).make(PythonHelper())("x") == "!x"
