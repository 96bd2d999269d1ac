"""Programs: which one is current, what they show, copies, and the scope that keeps their state."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import NeedsPythonValue
from dy2st.ir.equality import structurally_equal
from dy2st.ir.parser import parse

F32 = "float32"
static = paddle.static


def run(program, feed=None, *fetches):
    return static.Executor().run(program, feed=feed, fetch_list=list(fetches))


def test_static_mode_is_entered_and_left():
    assert paddle.in_dynamic_mode()
    paddle.enable_static()
    assert not paddle.in_dynamic_mode()
    paddle.disable_static()
    assert paddle.in_dynamic_mode()
    assert paddle.ones([1]).item() == 1.0


@pytest.mark.proves("static.program_guard static.default_main_program static.default_startup_program")
def test_a_guard_changes_the_default_programs(main):
    other, startup = static.Program(), static.Program()
    with static.program_guard(other, startup):
        assert static.default_main_program() is other
        assert static.default_startup_program() is startup
        paddle.ones([1])
    assert static.default_main_program() is main
    assert other.ops
    assert not main.ops


def test_a_guard_outside_of_static_mode_holds_for_it_later():
    program = static.Program()
    with static.program_guard(program):
        assert paddle.in_dynamic_mode()
        assert static.default_main_program() is program
    assert static.default_main_program() is not program


def test_a_guard_needs_programs(main):
    with pytest.raises(TypeError, match=r"program_guard: main_program must be a paddle.static.Program, not int"):
        static.program_guard(3).__enter__()
    with pytest.raises(TypeError, match=r"program_guard: startup_program must be a paddle.static.Program, not str"):
        static.program_guard(main, "x").__enter__()


def test_the_text_of_a_program_reads_back(main):
    x = static.data("x", [None, 2], F32)
    static.nn.cond(x.sum() > 0, lambda: static.nn.fc(x, 3), lambda: static.nn.fc(x, 3))
    text = str(main)
    assert "cond" in text
    assert structurally_equal(parse(text), main.ir_program())


def test_operations_have_types_attributes_and_places(main):
    x = static.data("x", [2, 3], F32)
    x.sum(axis=1)
    operator = main.global_block().ops[-1]
    assert operator.type == "sum"
    assert operator.has_attr(operator.attr_names[0])
    assert operator.location.file.endswith("test_program.py")
    assert operator == main.ops[-1]
    with pytest.raises(ValueError, match="the operation sum has no attribute 'q'"):
        operator.attr("q")


def test_blocks_and_variables_by_name(main):
    x = static.data("x", [2], F32)
    y = static.nn.cond(x.sum() > 0, lambda: x + 1, lambda: x)
    y.name = "y"
    block = main.global_block()
    assert block.var("y") is y
    assert block.has_var("x")
    assert not block.has_var("z")
    assert main.num_blocks == 3
    assert {"x", "y"} <= set(block.vars)
    assert {v.name for v in main.list_vars()} >= {"x", "y"}
    with pytest.raises(ValueError, match="the Program has no variable named 'z'"):
        block.var("z")


def test_data_declared_twice_is_one_variable(main):
    x = static.data("x", [None, 2], F32)
    assert static.data("x", [-1, 2], F32) is x
    with pytest.raises(ValueError, match=r"this Program has data 'x' as float32\[x_0, 2\] already"):
        static.data("x", [3, 2], F32)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (("x", [1], F32, 1), ValueError, "data 'x': lod_level=1: there are no tensors of sequences here, pad them"),
        ((3, [1]), TypeError, "data needs a name, a string, not 3"),
        (("", [1]), TypeError, "data needs a name, a string, not ''"),
        (("x", 3), TypeError, "data 'x': shape must be a list or tuple of extents, not int"),
        (("x", [-2]), ValueError, "data 'x': an extent is not negative"),
        (("x", ["a"]), TypeError, "data 'x': an extent is an int, None or -1, not 'a'"),
        (("w", [1]), ValueError, "the name 'w' of this data is that of a parameter or state"),
    ],
)
def test_wrong_declarations(main, arguments, kind, message):
    static.create_parameter([1], F32, name="w")
    with pytest.raises(kind, match=message):
        static.data(*arguments)


@pytest.mark.parametrize("use", [bool, int, float, lambda v: v.numpy(), lambda v: v.item() > 1 or bool(v.item())])
def test_a_variable_has_no_value_while_building(main, use):
    x = static.data("x", [1], F32)
    with pytest.raises(NeedsPythonValue, match=r"test_program.py|symbolic"):
        use(x)


@pytest.mark.proves("static.Variable")
def test_a_variable_says_what_it_is(main):
    x = static.data("x", [None, 2], F32)
    assert str(x) == "var x : float32[-1, 2], stop_gradient=True"
    assert x.to_string() == str(x)
    w = static.create_parameter([2], F32, name="w")
    assert str(w) == "persist trainable var w : float32[2], stop_gradient=False"
    assert x.block.idx == w.block.idx == 0


# ---- copies ------------------------------------------------------------------------------------------------------


def small_network(drop="upscale_in_train"):
    x = static.data("x", [None, 4], F32)
    h = static.nn.batch_norm(static.nn.fc(x, 8))
    h = paddle.nn.functional.dropout(h, 0.5, mode=drop)
    return h, static.nn.fc(h, 1).mean()


@pytest.mark.proves("static.Program.clone")
def test_a_copy_does_the_same_and_is_its_own(main):
    x = static.data("x", [2], F32)
    y = x + 1
    copy = main.clone()
    with static.program_guard(copy):
        z = y * 10
    assert run(copy, {"x": np.ones(2, F32)}, z)[0].tolist() == [20.0, 20.0]
    assert len(copy.ops) > len(main.ops)


@pytest.mark.parametrize("drop", ["upscale_in_train", "downscale_in_infer"])
def test_a_copy_for_testing_only_evaluates(main, drop, rng):
    h, loss = small_network(drop)
    test = main.clone(for_test=True)
    paddle.optimizer.SGD(0.1).minimize(loss)
    after = main.clone(for_test=True)
    run(static.default_startup_program())
    feed = {"x": rng.normal(size=(6, 4)).astype(F32)}
    before = {n: t.numpy() for n, t in main.state_dict().items() if n in test.state_dict()}
    one, again, other = run(test, feed, h)[0], run(test, feed, h)[0], run(after, feed, h)[0]
    assert one.tolist() == again.tolist() == other.tolist()
    for name, t in test.state_dict().items():
        np.testing.assert_array_equal(t.numpy(), before[name])
    assert "batch_norm_train" not in [op.type for op in test.ops]
    assert [op.type for op in test.ops] == [op.type for op in after.ops]
    run(main, feed, loss)
    assert run(test, feed, h)[0].tolist() != one.tolist()


def test_a_copy_for_testing_draws_no_random_numbers(main):
    h, _ = small_network()
    test = main.clone(for_test=True)
    run(static.default_startup_program())
    state = paddle.get_rng_state()
    run(test, {"x": np.ones((2, 4), F32)}, h)
    assert paddle.get_rng_state() == state


def test_a_copy_for_testing_keeps_random_numbers_that_the_model_is_made_of(main):
    r = paddle.rand([2])
    test = main.clone(for_test=True)
    assert run(test, None, r)[0].tolist() != run(test, None, r)[0].tolist()


def test_state_dict_gives_and_takes_values(main):
    w = static.create_parameter([2], F32, name="w")
    static.create_global_var([1], 3.0, F32, name="step")
    run(static.default_startup_program())
    assert set(main.state_dict("param")) == {"w"}
    assert set(main.state_dict("opt")) == {"step"}
    main.set_state_dict({"w": np.array([5.0, 6.0], F32), "unknown": 1})
    assert w.get_value().numpy().tolist() == [5.0, 6.0]
    with pytest.raises(ValueError, match="mode must be 'all', 'param' or 'opt', not 'x'"):
        main.state_dict("x")


def test_random_seed_is_an_int(main):
    with pytest.raises(ValueError, match="random_seed must be an int, not 'a'"):
        main.random_seed = "a"


# ---- scopes ------------------------------------------------------------------------------------------------------


@pytest.mark.proves("static.scope_guard static.global_scope")
def test_scopes_keep_values_apart(main):
    w = static.create_parameter([2], F32, name="w")
    one, two = static.Scope(), static.Scope()
    for scope in (one, two):
        static.Executor().run(static.default_startup_program(), scope=scope)
    one.find_var("w").get_tensor().set(np.array([1.0, 2.0]), paddle.CPUPlace())
    assert static.Executor().run(main, fetch_list=[w], scope=one)[0].tolist() == [1.0, 2.0]
    assert static.Executor().run(main, fetch_list=[w], scope=two)[0].tolist() != [1.0, 2.0]
    assert static.global_scope().find_var("w") is None


def test_a_scope_in_a_scope_sees_the_one_around_it():
    outer = static.Scope()
    outer.var("a").set(np.ones(2, F32))
    inner = outer.new_scope()
    assert inner.find_var("a") is outer.find_var("a")
    inner.var("b")
    assert outer.find_var("b") is None
    assert outer.local_var_names() == ["a"]
    assert not inner.find_var("b").is_initialized()
    assert inner.find_var("a").get_tensor().shape() == [2]
    assert "no value" in repr(inner.find_var("b").get_tensor())


def test_a_value_keeps_its_shape():
    scope = static.Scope()
    scope.var("a").set(np.ones(2, F32))
    with pytest.raises(ValueError, match=r"the variable a has shape \[2\], the value for it \[3\]"):
        scope.var("a").set(np.ones(3, F32))


def test_a_scope_guard_needs_a_scope():
    with pytest.raises(TypeError, match="scope_guard needs a Scope, not int"):
        static.scope_guard(3).__enter__()


@pytest.mark.proves("static.create_parameter")
def test_a_parameter_takes_values_of_its_shape(main):
    w = static.create_parameter([2], F32, name="w")
    w.set_value(np.array([3.0, 4.0]))
    assert w.numpy().tolist() == [3.0, 4.0]
    with pytest.raises(ValueError, match=r"set_value: the value has shape \[3\], the parameter w \[2\]"):
        w.set_value(np.ones(3))


def test_a_parameter_without_a_program_is_an_eager_one():
    w = static.create_parameter([1, 3], F32, default_initializer=paddle.nn.initializer.Constant(2.0))
    assert isinstance(w, paddle.nn.Parameter)
    assert w.numpy().tolist() == [[2.0, 2.0, 2.0]]


def test_a_compiled_program_wraps_a_program(main):
    compiled = static.CompiledProgram(main, static.BuildStrategy()).with_data_parallel("loss")
    assert compiled.num_blocks == 1
    with pytest.raises(TypeError, match="CompiledProgram needs a Program, not int"):
        static.CompiledProgram(3)
