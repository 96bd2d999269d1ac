"""What a Program depends on outside of the function, and what may not leave it."""

import types
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from itertools import count
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import ConversionError, StructureError, TraceError
from dy2st.jit.static_function import FallbackWarning

Pair = namedtuple("Pair", "x y")


def tensor(*values):
    return paddle.to_tensor(np.array(values, "float32"))


# ---- layers ---------------------------------------------------------------------------------------------------------
def test_hooks_that_come_and_go():
    layer = paddle.nn.Linear(2, 2)
    f = paddle.jit.to_static(lambda x: layer(x), full_graph=True)
    x = tensor(1, 2)
    plain = f(x).numpy()
    hook = layer.register_forward_post_hook(lambda layer, inputs, output: output * 2)
    np.testing.assert_allclose(f(x).numpy(), plain * 2)
    hook.remove()
    np.testing.assert_allclose(f(x).numpy(), plain)


def test_what_a_hook_writes_is_written_at_each_call():
    layer, seen = paddle.nn.Linear(2, 2), {}
    layer.register_forward_post_hook(lambda layer, inputs, output: seen.__setitem__("output", output))
    f = paddle.jit.to_static(lambda x: layer(x), full_graph=True)
    for x in (tensor(1, 2), tensor(3, 4)):
        np.testing.assert_allclose(seen.get("output", f(x)).numpy().shape, (2,))
        np.testing.assert_allclose(f(x).numpy(), seen["output"].numpy())


def test_sublayers_that_are_exchanged():
    net = paddle.nn.Sequential(paddle.nn.Linear(2, 2), paddle.nn.ReLU())
    layers = paddle.nn.LayerList([paddle.nn.Tanh()])

    def run(x):
        for layer in layers:
            x = layer(x)
        return x

    f, g, x = paddle.jit.to_static(lambda x: net(x)), paddle.jit.to_static(run), tensor(1, -2)
    f(x), g(x)
    net[1] = paddle.nn.Sigmoid()
    layers.append(paddle.nn.ReLU())
    np.testing.assert_allclose(f(x).numpy(), net(x).numpy())
    np.testing.assert_allclose(g(x).numpy(), run(x).numpy())


def test_training_mode_is_switched_inside():
    net = paddle.nn.Sequential(paddle.nn.Dropout(0.5))

    @paddle.jit.to_static(full_graph=True)
    def f(x):
        net.eval()
        return net(x)

    for _ in range(2):
        net.train()
        assert f(tensor(1, 1)).tolist() == [1, 1]
        assert not net.training
        assert not net[0].training


# ---- what is read ---------------------------------------------------------------------------------------------------
def test_an_array_that_changes():
    table = np.array([1, 2], "float32")
    f = paddle.jit.to_static(lambda x: x + table, full_graph=True)
    assert f(tensor(0, 0)).tolist() == [1, 2]
    table[0] = 9
    assert f(tensor(0, 0)).tolist() == [9, 2]


@pytest.mark.parametrize("write", ["item", "method", "in_place"])
def test_an_array_that_is_written_falls_back(write):
    table = np.zeros(2, "float32")

    @paddle.jit.to_static
    def f(x):
        nonlocal table
        if write == "item":
            table[0] = table[0] + 1
        elif write == "method":
            table.fill(table[0] + 1)
        else:
            table += 1
        return x + table

    with pytest.warns(FallbackWarning, match="a ndarray from outside is changed"):
        assert f(tensor(0, 0))[0] == 1
    assert f(tensor(0, 0))[0] == 2


def test_an_iterator_from_outside_falls_back():
    numbers = count(5)

    @paddle.jit.to_static
    def f(x):
        return x + next(numbers)

    with pytest.warns(FallbackWarning, match="a count from outside is changed"):
        assert f(tensor(0)).tolist() == [5]
    assert f(tensor(0)).tolist() == [6]


def test_python_runs_through_a_range_of_unknown_length():
    def items(x):
        for i in range(x.shape[0]):
            yield x[i] * i

    @paddle.jit.to_static
    def f(x):
        later = items(x)
        return next(later) + next(later)

    with pytest.warns(FallbackWarning, match="Python itself ran through something whose length only the run"):
        assert f(tensor(1, 2, 3)) == 2


# ---- containers ------------------------------------------------------------------------------------------------------
def test_a_dict_that_makes_its_items():
    groups = defaultdict(list)

    @paddle.jit.to_static(full_graph=True)
    def f(x):
        groups["all"].append(x.sum())
        mine = defaultdict(int)
        mine["n"] += 1
        if x.sum() > 0:
            mine["n"] += 2
        return mine, len(groups["all"])

    mine, length = f(tensor(1, 2))
    assert type(mine) is defaultdict
    assert mine["n"] == 3
    assert mine["other"] == 0
    assert length == 1
    assert f(tensor(-1, -2))[1] == 2
    assert [float(x) for x in groups["all"]] == [3, -3]


def test_ordered_and_counting_dicts():
    @paddle.jit.to_static(full_graph=True)
    def f(x):
        order = OrderedDict(a=x, b=x * 2)
        order.move_to_end("a")
        letters = Counter("abca")
        letters.subtract("a")
        return order, letters

    order, letters = f(tensor(1))
    assert [(k, v.tolist()) for k, v in order.items()] == [("b", [2]), ("a", [1])]
    assert type(letters) is Counter
    assert letters["a"] == 1


def test_containers_that_operators_change():
    names, rows = {"a"}, deque([1, 2])

    @paddle.jit.to_static(full_graph=True)
    def f(x, d):
        nonlocal names, rows
        names |= {"b"}
        rows += [3]
        d |= {"k": x}
        return x

    d = {}
    f(tensor(1), d)
    assert sorted(names) == ["a", "b"]
    assert list(rows) == [1, 2, 3]
    assert d["k"].tolist() == [1]


def test_a_list_that_is_put_into_a_dict_from_outside():
    store = {}

    @paddle.jit.to_static(full_graph=True)
    def f(x):
        store["rows"] = [x, [x * 2]]
        return x

    f(tensor(1))
    assert [store["rows"][0].tolist(), store["rows"][1][0].tolist()] == [[1], [2]]


def test_named_tuples_and_ordered_dicts_as_arguments():
    @paddle.jit.to_static(full_graph=True)
    def f(pair, words):
        words["z"] = pair.x * 2
        return Pair(pair.x + pair.y, pair.y) if pair.x.sum() > 0 else pair

    words = OrderedDict(a=tensor(1))
    assert f(Pair(tensor(1), tensor(2)), words).x.tolist() == [3]
    assert words["z"].tolist() == [2]
    assert f(Pair(tensor(-1), tensor(2)), OrderedDict(a=tensor(1))).x.tolist() == [-1]
    assert len(f.program_cache) == 1


def test_special_methods_of_a_users_class():
    class Memory:
        def __init__(self):
            self.found = {}

        def __getitem__(self, key):
            return self.found[key]

        def __setitem__(self, key, value):
            self.found[key] = value

        def __delitem__(self, key):
            del self.found[key]

        def __contains__(self, key):
            return key in self.found

        def __len__(self):
            return len(self.found)

        def __iter__(self):
            return iter(self.found)

    memory = Memory()

    @paddle.jit.to_static(full_graph=True)
    def f(x):
        memory["a"], memory["b"] = x, x * 2
        del memory["a"]
        return len(memory), "a" in memory, memory["b"], [key for key in memory]

    for value in (1, 2):
        length, there, b, keys = f(tensor(value))
        assert (length, there, b.tolist(), keys) == (1, False, [2 * value], ["b"])
        assert memory.found["b"].tolist() == [2 * value]


def test_a_setter_of_a_property_is_converted():
    class Net(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.kept = 1.0

        @property
        def scale(self):
            return self.kept

        @scale.setter
        def scale(self, value):
            self.kept = value

        def forward(self, x):
            self.scale = self.scale * 2
            return x * self.scale

    net = Net()
    f = paddle.jit.to_static(net.forward, full_graph=True)
    assert [float(f(tensor(1))[0]) for _ in range(3)] == [2, 4, 8]


# ---- what may not leave ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "function",
    [
        lambda x: map(lambda v: v * 2, [x]),
        lambda x: (v for v in [x]),
        lambda x: lambda: x,
        lambda x: zip([x], [x], strict=True),
    ],
)
def test_an_object_that_holds_tensors_of_the_trace(function):
    with pytest.raises(StructureError, match="leaves the function"):
        paddle.jit.to_static(function, full_graph=True)(tensor(1))


def test_the_hash_of_a_number_of_the_run():
    for function in (lambda x: hash(x.item()), lambda x: {int(x): 1}, lambda x: len({int(x), 4})):
        with pytest.raises(TraceError, match="the hash of a"):
            paddle.jit.to_static(function, full_graph=True)(paddle.to_tensor(4))
        with pytest.warns(FallbackWarning):
            assert paddle.jit.to_static(function)(paddle.to_tensor(4)) == function(paddle.to_tensor(4))


class Holder:
    """Something to write to."""


@pytest.mark.parametrize("inner", [False, True])
def test_a_function_without_source_is_never_traced(inner):
    space = {"holder": Holder()}
    exec("def made(x):\n    holder.seen = x * 2\n    return x + 1\n", space)
    made = space["made"]
    f = (lambda x: made(x)) if inner else made
    static = paddle.jit.to_static(f)
    with pytest.warns(FallbackWarning, match="`made` cannot be converted: its source is not kept"):
        assert static(tensor(1)).tolist() == [2]
    assert space["holder"].seen.tolist() == [2]
    with pytest.raises(ConversionError, match="`made` cannot be converted"):
        paddle.jit.to_static(f, full_graph=True)(tensor(1))


def test_wrong_arguments_raise_what_python_says():
    def f(x, y, *, z=1):
        return x

    for arguments, words in (((), {}), ((1,), {}), ((1, 2, 3), {}), ((1, 2), {"q": 1}), ((1, 2), {"x": 1})):
        with pytest.raises(TypeError) as eager:
            f(*arguments, **words)
        with pytest.raises(TypeError) as static:
            paddle.jit.to_static(f)(*arguments, **words)
        assert str(static.value) == str(eager.value)


def test_an_exception_comes_after_the_raise_that_stands_before_it():
    @paddle.jit.to_static(full_graph=True)
    def f(x):
        if x.sum() > 0:
            raise KeyError("first")
        return {}["second"]

    with pytest.raises(KeyError, match="first"):
        f(tensor(1))
    with pytest.raises(KeyError, match="second"):
        f(tensor(-1))


def test_a_module_of_the_user_holds_state():
    settings = types.ModuleType("settings_of_this_test")
    settings.scale, settings.calls, settings.rows = 2.0, 0, [1]

    @paddle.jit.to_static(full_graph=True)
    def f(x):
        settings.calls += 1
        return x * settings.scale + len(settings.rows)

    assert f(tensor(1)).tolist() == [3]
    settings.scale = 5.0
    settings.rows.append(1)
    assert f(tensor(1)).tolist() == [7]
    assert settings.calls == 2


class Keeper:
    def __init__(self) -> None:
        self.buffer = paddle.zeros([2])
        self.whole = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])
        self.state: Any = self.whole[0]


def test_a_write_in_place_goes_to_the_tensor_that_stands_there_now() -> None:
    keeper = Keeper()

    @paddle.jit.to_static(full_graph=True)
    def add(x: Any) -> Any:
        keeper.buffer.add_(x)
        return keeper.buffer * 1

    first = keeper.buffer
    add(paddle.ones([2]))
    keeper.buffer = paddle.full([2], 10.0)
    add(paddle.ones([2]))
    assert (first.numpy().tolist(), keeper.buffer.numpy().tolist()) == ([1.0, 1.0], [11.0, 11.0])
    assert len(add.program_cache) == 1


def test_a_view_kept_in_an_attribute_is_read_anew_at_each_call() -> None:
    keeper = Keeper()

    @paddle.jit.to_static(full_graph=True)
    def step(x: Any) -> Any:
        keeper.state = paddle.stack([keeper.state + x, x])[0]
        return keeper.state

    assert [step(paddle.ones([2])).numpy().tolist() for _ in range(3)] == [[2.0, 3.0], [3.0, 4.0], [4.0, 5.0]]
    keeper.state = keeper.whole[1]
    assert step(paddle.ones([2])).numpy().tolist() == [4.0, 5.0]
    assert len(step.program_cache) == 1


def test_a_tensor_and_a_view_of_it_in_attributes_are_refused_together() -> None:
    keeper = Keeper()

    @paddle.jit.to_static(full_graph=True)
    def both(x: Any) -> Any:
        return keeper.state + keeper.whole.sum() + x

    with pytest.raises(StructureError, match="a tensor is read of which the trace also reads a view"):
        both(paddle.ones([2]))


def test_a_program_that_reads_the_items_of_a_list_can_be_printed():
    rows, named = [tensor(1), 2, tensor(3)], {(1, 2): tensor(5)}
    f = paddle.jit.to_static(lambda x: x + rows[0] + rows[2] + named[1, 2], full_graph=True)
    assert f(tensor(1)).tolist() == [10]
    assert "item_2" in str(f.main_program)


def test_a_view_in_a_dict_is_a_state_of_its_own():
    kept = {"a": tensor(1).detach(), "b": tensor(1, 2)[:1], "c": tensor(1)}

    @paddle.jit.to_static(full_graph=True)
    def step(x: Any) -> Any:
        for name in ("a", "b", "c"):
            kept[name] = kept[name] * 2 + x
        return kept["a"]

    assert [step(tensor(1)).tolist() for _ in range(3)] == [[3], [7], [15]]
    assert [kept[name].tolist() for name in kept] == [[15], [15], [15]]
    assert len(step.program_cache) == 1


def test_a_view_in_a_list_is_written_in_place():
    kept = [tensor(1).detach()]

    @paddle.jit.to_static(full_graph=True)
    def step(x: Any) -> Any:
        kept[0].add_(x)
        return kept[0] * 1

    assert [step(tensor(1)).tolist() for _ in range(3)] == [[2], [3], [4]]


def test_a_tensor_that_was_a_view_of_a_parameter_is_traced_again_when_it_is_not():
    w, keeper, kept = paddle.create_parameter([1], "float32"), Keeper(), {}

    def step(x: Any) -> Any:
        w.set_value(w * 0.5)
        keeper.state = keeper.state * 2 + w.detach()
        kept["w"] = kept["w"] + w.detach()
        return x * 1

    def three(step: Any) -> Any:
        w.set_value(paddle.ones([1]))
        keeper.state, kept["w"] = w.detach(), w.detach()
        return [(step(tensor(1)), keeper.state.tolist(), kept["w"].tolist())[1:] for _ in range(3)]

    assert three(paddle.jit.to_static(step, full_graph=True)) == three(step)


def _appended_or_cleared(rows, v):
    if v.sum() < 0:
        rows.append(v.sum())
    else:
        rows.clear()
    return len(rows)


def _appended_and_taken(rows, v):
    rows.append(v.sum())
    if len(rows) > 2:
        rows.pop(0)
    return len(rows)


def _cleared_between(rows, v):
    rows.append(v.sum())
    if v.sum() < -1.5:
        rows.clear()
    else:
        rows.append(v * 3)
    return v * 1


def _appended_and_cleared_in_a_loop(rows, v):
    for i in range(len(v)):
        if v[i] > 0:
            rows.clear()
        rows.append(v[i])
    return len(rows)


@pytest.mark.parametrize(
    "change", [_appended_or_cleared, _appended_and_taken, _cleared_between, _appended_and_cleared_in_a_loop]
)
def test_a_list_outside_that_is_appended_to_and_changed_otherwise(change):
    def three(make: Any) -> Any:
        rows: list[Any] = []
        step = make(lambda v: change(rows, v))
        found = []
        for first in (-1.0, -2.0, 1.0, -1.0):
            result = step(tensor(first, -first, first))
            found.append((float(result.sum()) if isinstance(result, paddle.Tensor) else result,
                          [row.tolist() for row in rows]))  # fmt: skip
        return found

    assert three(lambda f: paddle.jit.to_static(f, full_graph=True)) == three(lambda f: f)


def test_extents_of_tensors_outside_are_read_at_each_call():
    kept = {"rows": paddle.ones([3, 2])}

    @paddle.jit.to_static(full_graph=True)
    def step(x: Any) -> Any:
        rows = kept["rows"]
        return rows.sum() / rows.shape[0] * x, len(rows), rows @ paddle.ones([2, 1])

    found = []
    for n in (3, 6):
        kept["rows"] = paddle.ones([n, 2])
        mean, length, product = step(tensor(1))
        found.append((mean.tolist(), length, product.tolist()))
    assert found == [([2.0], 3, [[2.0]] * 3), ([2.0], 6, [[2.0]] * 6)]
    assert len(step.program_cache) == 1


def test_batches_of_tensors_outside_are_multiplied():
    kept = [paddle.ones([3, 2, 2])[:2], paddle.ones([2, 2, 2])]
    f = paddle.jit.to_static(lambda x: (kept[0] @ kept[1]) @ paddle.stack([x, x]), full_graph=True)
    assert f(paddle.ones([2, 1])).tolist() == [[[4.0], [4.0]]] * 2
