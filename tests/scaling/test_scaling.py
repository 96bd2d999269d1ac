"""What a Program is said to cost, and what that gives on many ranks: numbers that can be worked out by hand."""

from typing import Any

import pytest

import dy2st as paddle
from dy2st.cli import main
from dy2st.scaling import STRATEGIES, Cost, Link, Workload, costs_of, outlook
from dy2st.scaling.simulation import cut
from dy2st.static import InputSpec

FAST, SLOW = Link(0.0, 1e15), Link(1e-3, 1e6)


@pytest.fixture
def model(tmp_path: Any) -> Any:
    net = paddle.nn.Sequential(paddle.nn.Linear(64, 128), paddle.nn.ReLU(), paddle.nn.Linear(128, 32))
    return paddle.jit.save(net, tmp_path / "m", input_spec=[InputSpec([None, 64])])


def costs(path: Any, **extents: int) -> list[Cost]:
    call, program = paddle.jit.load(path)._methods["forward"].programs()[0]
    return costs_of(program, call.inputs, extents)


def test_costs_are_those_of_the_layers(model: Any) -> None:
    found = costs(model, input_0=10)
    products = [c for c in found if c.columns]
    assert [c.flops for c in products] == [2 * 10 * 64 * 128, 2 * 10 * 128 * 32]
    assert [c.columns for c in products] == [128, 32]
    assert [c.results for c in products] == [4 * 10 * 128, 4 * 10 * 32]
    assert sum(c.weights for c in found) == 4 * (64 * 128 + 128 + 128 * 32 + 32)
    assert found[-1].alive == 4 * 10 * 32


def test_costs_of_convolutions_attention_and_loops(tmp_path: Any) -> None:
    conv = paddle.jit.save(paddle.nn.Conv2D(3, 8, 3), tmp_path / "conv", input_spec=[InputSpec([None, 3, 10, 10])])
    (product,) = [c for c in costs(conv, x_0=2) if c.columns]
    assert (product.flops, product.columns) == (2 * (2 * 8 * 8 * 8) * 27, 8)
    gru = paddle.jit.save(paddle.nn.GRU(4, 8), tmp_path / "gru", input_spec=[InputSpec([None, 5, 4])])
    assert sum(c.weights for c in costs(gru, inputs_0=2, n0=5)) == 4 * (24 * 4 + 24 * 8 + 24 * 2)


def test_an_extent_that_is_not_known(model: Any) -> None:
    with pytest.raises(ValueError, match="the extent input_0 is not known"):
        costs(model)


def test_an_extent_of_a_list_is_asked_for_and_a_list_is_no_input(tmp_path: Any, capsys: Any) -> None:
    class Rows(paddle.nn.Layer):
        def forward(self, x: Any) -> Any:
            return [x[i] for i in range(x.shape[0])]

    rows = paddle.jit.save(Rows(), tmp_path / "rows", input_spec=[InputSpec([None, None])])
    assert main(["scale", str(rows)]) == 1
    assert "is not known: say what it is to be" in capsys.readouterr().err


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_rank_is_what_was_measured(strategy: str, model: Any) -> None:
    found = outlook(strategy, Workload(costs(model, input_0=10), 0.5), SLOW, 1)
    assert found is not None
    assert found.seconds == pytest.approx(0.5)
    assert (found.traffic, found.efficiency) == (0, pytest.approx(1))


def test_a_link_of_no_cost_costs_nothing_and_a_slow_one_does(model: Any) -> None:
    work = Workload(costs(model, input_0=10), 0.5)
    for strategy in ("data", "sharded"):
        fast, slow = (outlook(strategy, work, link, 1024) for link in (FAST, SLOW))
        assert fast is not None
        assert slow is not None
        assert fast.efficiency == pytest.approx(1)
        assert slow.efficiency < 0.5
        assert fast.traffic == slow.traffic == pytest.approx(2 * work.weights * 1023 / 1024)
    data, sharded = (outlook(s, work, FAST, 4) for s in ("data", "sharded"))
    assert data is not None
    assert sharded is not None
    assert data.memory - sharded.memory == pytest.approx(3 * work.weights * 3 / 4)


def test_an_all_reduce_of_a_ring() -> None:
    assert Link(1e-5, 1e9).ring(8e6, 4, 2) == pytest.approx(6 * (1e-5 + 2e-3))


def test_where_a_model_is_too_small(model: Any) -> None:
    work = Workload(costs(model, input_0=10), 0.5)
    assert outlook("tensor", work, FAST, 32) is not None
    assert outlook("tensor", work, FAST, 64) is None  # there are 32 columns
    assert outlook("pipeline", work, FAST, len(work.costs) + 1) is None
    with pytest.raises(ValueError, match="is none of data"):
        outlook("luck", work, FAST, 2)


def test_a_pipeline_waits_for_its_first_and_last_batch() -> None:
    work = Workload([Cost("matmul", 10, 0, 0, 0, 0)] * 4, 1.0, micro_batches=8)
    found = outlook("pipeline", work, FAST, 4)
    assert found is not None
    assert found.seconds == pytest.approx((8 + 4 - 1) / 8 / 4)


def test_stages_are_cut_where_the_slowest_is_fastest() -> None:
    made = [Cost("matmul", flops, 0, 0, 0, 0) for flops in (5, 1, 1, 5, 2, 6, 0)]
    for stages, slowest in ((1, 20), (2, 12), (3, 7), (5, 6), (7, 6)):
        found = cut(made, stages)
        assert found is not None
        assert len(found) == stages
        assert [c for stage in found for c in stage] == made
        assert max(sum(c.flops for c in stage) for stage in found) == slowest


def test_the_command(model: Any, capsys: Any) -> None:
    assert main(["scale", str(model), "--batch", "4", "--bandwidth", "0.001"]) == 0
    out = capsys.readouterr().out
    assert "batch 4 a rank" in out
    assert "| 1 | data |" in out
    assert "(stops)" in out
    assert "too many ranks" not in out  # the link stops all of it before
