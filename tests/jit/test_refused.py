"""What `full_graph=True` refuses, what it does not, and what the errors say."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import NeedsPythonValue, StructureError
from dy2st.runtime.tracer.loops import loop_statement


def tensor(*values):
    return paddle.to_tensor(np.array(values, "float32"))


def refused(function, *arguments):
    return paddle.jit.to_static(function, full_graph=True)(*arguments)


def test_the_text_of_what_an_operation_raises():
    def f(x):
        try:
            return x[int(x[0])]
        except IndexError as error:
            return x * len(str(error))

    with pytest.raises(StructureError, match="the text of an exception that an operation raises in the run"):
        refused(f, tensor(1, 2))


def test_a_recursion_that_raises_what_a_try_outside_catches():
    def deeper(x):
        if x.sum() > 100:
            raise ValueError("enough")
        return deeper(x * 2) if x.sum() > 0 else x

    def f(x):
        try:
            return deeper(x)
        except ValueError:
            return x

    with pytest.raises(StructureError, match="a function that calls itself raises what a `try` outside of it"):
        refused(f, tensor(1, 2))


def test_a_handler_of_another_kind_is_no_obstacle():
    def f(x):
        try:
            if x.sum() < 0:
                raise ValueError("negative")
        except KeyError:
            return x * 2
        return x

    with pytest.raises(ValueError, match="negative"):
        refused(f, tensor(-1))


def test_the_derivative_of_a_recursion():
    def halve(x):
        return x if x < 1 else halve(x / 2)

    x = paddle.to_tensor(8.0, stop_gradient=False)
    y = refused(halve, x)
    y.backward()
    assert y.tolist() == 0.5
    assert x.gradient() == 1 / 16


def test_a_recursion_without_an_end():
    def forever(x):
        if x.sum() > 0:
            return forever(x * 2)
        return forever(x + 1)

    with pytest.raises(StructureError, match="`forever` calls itself on every path: it never ends"):
        refused(forever, tensor(1))


def test_an_exception_of_several_arguments_keeps_them():
    def f(x):
        if x.sum() > 0:
            raise OSError(5, "text", "file")
        return x

    with pytest.raises(OSError, match="text") as caught:
        refused(f, tensor(1))
    assert caught.value.args == (5, "text")


def test_a_number_that_python_needs():
    def f(x):
        return x * [1, 2, 3][: len(x[x > 0])][0]

    with pytest.raises(NeedsPythonValue, match="a symbolic int was needed as a Python int"):
        refused(f, tensor(1, 2, 3))


def test_one_of_several_things_that_python_needs():
    def f(x):
        k = "a" if x.sum() > 0 else None
        return x * len([i for i in range(2) if np.zeros(k is None)])

    with pytest.raises(NeedsPythonValue, match="needed as a Python int"):
        refused(f, tensor(1))


def test_a_list_in_a_dict_of_which_only_the_run_tells_the_items():
    def f(x):
        rows = {}
        if x.sum() > 0:
            rows["all"] = []
        else:
            rows["all"], rows["up"] = [], 1
        rows["all"].append(x)
        return len(rows["all"])

    with pytest.raises(StructureError, match="a container is changed in place, and only the run will tell"):
        refused(f, tensor(1))


def test_one_kind_of_call_that_cannot_be_traced_leaves_the_others_static():
    def f(x, how):
        if how == "numpy":
            return x * len(x.numpy())
        return x * 2 if x.sum() > 0 else x

    static = paddle.jit.to_static(f)
    with pytest.warns(
        paddle.jit.static_function.FallbackWarning,
        match="the line below runs eagerly, as this cannot be one Program: numpy",
    ):
        assert static(tensor(1, 2), "numpy").tolist() == [2, 4]
    assert static(tensor(1, 2), "plain").tolist() == [2, 4]
    assert static(tensor(3, 2), "numpy").tolist() == [6, 4]
    assert len(static.program_cache) == 1
    assert len(static.explain().fallbacks) == 1


def test_a_while_that_no_test_ends_while_it_is_traced(monkeypatch):
    def f(x):
        at = 0
        try:
            while True:
                x[at] + 1
                at += 1
        except IndexError:
            return at

    monkeypatch.setattr(loop_statement, "MOST_ITERATIONS", 100)
    with pytest.raises(StructureError, match="recorded operations for 100 turns and its test is still a Python value"):
        refused(f, tensor(1, 2))


def test_the_text_of_a_tensor_is_not_frozen():
    text, weight = "%s", tensor(1, 2)

    def f(x):
        return text % (x,), x

    def g(x):
        return text % (weight,), x

    for function in (f, g):
        with pytest.raises(NeedsPythonValue, match="the text of a tensor was needed while a Program is built"):
            refused(function, tensor(1, 2))


def test_the_format_of_a_tensor_is_written_by_each_run():
    text, weight = "{}", tensor(1, 2)

    def f(x):
        return text.format(weight)

    static = paddle.jit.to_static(f, full_graph=True)
    assert static(tensor(1)) == str(weight)
    weight.set_value(tensor(3, 4))
    assert static(tensor(1)) == str(weight)
    assert len(static.program_cache) == 1


def test_a_test_whose_error_the_users_code_drops():
    def f(x):
        for i in range(3):
            try:
                if x > i:
                    break
                x = x + 1
            finally:
                return x * 7

    with pytest.raises(NeedsPythonValue, match="the truth of a tensor was needed as a Python bool"):
        refused(f, tensor(1).sum())


def test_a_power_with_a_modulus():
    def f(x):
        return pow(int(x.max()), 2, 5)

    with pytest.raises(NeedsPythonValue, match=r"pow\(\) with a modulus was called on a symbolic int"):
        refused(f, tensor(1, 2))


def test_groups_of_exceptions():
    def f(x):
        try:
            if x.sum() > 0:
                raise ExceptionGroup("group", [ValueError(1)])
        except* ValueError:
            x = x * 2
        return x

    with pytest.raises(NeedsPythonValue, match=r"`except\*` takes groups of exceptions apart"):
        refused(f, tensor(1, 2))


def test_joined_things_that_are_no_texts():
    def f(x):
        return ", ".join([f"{x.shape[0]}", x.shape[0]])

    with pytest.raises(TypeError, match="expected str instance"):
        refused(f, tensor(1, 2))


def test_a_match_of_a_list_from_outside_whose_length_only_the_run_tells():
    kept = []

    def f(x, count):
        for i in range(count):
            kept.append(x * i)
        match kept:
            case [first, *_]:
                return first
        return x

    with pytest.raises(NeedsPythonValue, match="how long this list is, so Python cannot match it"):
        refused(f, tensor(1, 2), paddle.to_tensor(2))


def test_a_result_that_is_a_chosen_view_and_was_written():
    def f(x):
        x = x.reshape([2, 2]) * 1
        row = x[0] if x.sum() > 0 else x[1]
        part = row[1:]
        part[0] = 5
        return x, row

    with pytest.raises(StructureError, match="only the run tells of which part of another tensor"):
        refused(f, tensor(1, 2, 3, 4))
