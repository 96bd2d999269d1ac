"""`gather_tree` in native code: `eval`'s sequences for every size and dtype; what is outside raises its error."""

import pytest

import dy2st as paddle
from tests.runtime.backends.cpu.native import TARGETS, runnable, thread_counts
from tests.runtime.backends.cpu.test_same_as_interpreter import SIZES, compare, plans

gather_tree = paddle.nn.functional.gather_tree


def tree(rng, shape, words="int64", links="int64"):
    beams = max(shape[2], 1)

    return rng.integers(0, 99, shape).astype(words), rng.integers(-beams, beams, shape).astype(links)


@pytest.mark.parametrize(("words", "links"), [("int64", "int64"), ("int32", "int32"), ("uint8", "int16")])
def test_every_size(words, links, rng, guarded):
    native, plan = plans(gather_tree, *tree(rng, (4, 2, 3), words, links))
    for size in SIZES:
        for shape in ((size, 2, 3), (3, size, 2), (3, 2, min(size, 17))):
            inputs = tree(rng, shape, words, links)
            compare(native.run(list(inputs)), plan.run(list(inputs)), exact=True)
    assert native.elsewhere == 0


@pytest.mark.parametrize("parent", [3, -4, 2**40])
def test_a_parent_outside_is_evals_error(parent, rng):
    ids, parents = tree(rng, (4, 2, 3))
    native, plan = plans(gather_tree, ids, parents)
    parents[0, 1, 2] = parent
    for run in (native.run, plan.run):
        with pytest.raises(IndexError, match=f"gather_tree: index {parent} is out of range for axis 2 of extent 3"):
            run([ids, parents])


def test_other_extents_are_evals_error(rng):
    native, plan = plans(gather_tree, *tree(rng, (4, 2, 3)))
    for run in (native.run, plan.run):
        with pytest.raises(ValueError, match="gather_tree needs ids and parents of one shape of 3 axes, not"):
            run([tree(rng, (4, 2, 3))[0], tree(rng, (4, 1, 3))[1]])


def test_every_cpu(rng, monkeypatch):
    inputs = tree(rng, (5, 17, 4))
    for cpu in filter(runnable, TARGETS):
        monkeypatch.setenv("DY2ST_CPU", cpu)
        native, plan = plans(gather_tree, *inputs)
        compare(native.run(list(inputs)), plan.run(list(inputs)), exact=True)


def test_any_number_of_threads(rng):
    inputs = tree(rng, (50, 300, 8))
    native, plan = plans(gather_tree, *inputs)
    for _ in thread_counts():
        compare(native.run(list(inputs)), plan.run(list(inputs)), exact=True)
