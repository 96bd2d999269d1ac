"""Tensors and views of tensors outside of the function, which are written in place or exchanged."""

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import StructureError

Pair = namedtuple("Pair", "x y")


def tensor(*values):
    return paddle.to_tensor(np.array(values, "float32"))


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
