"""What the benchmarks make of their results: the page, the picture, exponents and physical limits."""

from typing import Any

import pytest

from benchmarks.run import text
from benchmarks.suite import find
from benchmarks.suite.ceilings import limit
from benchmarks.suite.growth import exponent
from benchmarks.suite.measure import SINGLE
from benchmarks.suite.picture import svg
from benchmarks.suite.report import page, ratio, ratios
from benchmarks.suite.report_forms import best_peer, seconds
from benchmarks.suite.workload import Work

CEILINGS = {
    "1": {"flops": 1e9, "bytes": {"1000": 4e9, "1000000": 1e9}},
    "2": {"flops": 2e9, "bytes": {"1000": 8e9, "1000000": 2e9}},
}


def measured(median: float, **more: float) -> dict[str, float]:
    """Return what a side gave."""
    return {"median": median, "min": median, "processor": median, "first": 0.5, "peak_memory": 3_000_000, **more}


def results(ours: Any = 2e-6, **peers: Any) -> dict[str, Any]:
    """Return results of one row."""
    sides = {"dy2st": measured(ours, cold=0.125), SINGLE: measured(3e-6), **peers}
    row = {"title": "", "taken": "2026-01-02", "machine": {"python": "3.11", "cores": "2"}, "load": 1.5, "sides": sides}
    return {"rows": {"cond": row}, "ceilings": CEILINGS}


def test_the_best_peer_is_another_package():
    sides = results(jax=measured(8e-6), torch=measured(4e-6))["rows"]["cond"]["sides"]
    assert best_peer(sides) == ("torch", 4e-6)
    assert ratio(sides) == 0.5


def test_a_row_alone_has_no_ratio():
    assert ratio(results()["rows"]["cond"]["sides"]) is None
    assert list(ratios(results())) == []


def test_the_page_has_times_costs_and_ceilings():
    written = page(results(jax=measured(8e-6)))
    assert "| 2 us | 3 us | not measured | not measured | 8 us |" in written
    assert "| 0.25 | 1x, 2 us | 0.25 |" in written
    assert "| 125 ms | 500 ms | 250 ms, 30 ms | 500 ms | 3 MB | 3 MB |" in written
    assert "2 GFLOP/s; copies of 8 GB/s in the cache and 2 GB/s beyond it" in written
    assert "Taken 2026-01-02: Python 3.11, 2 cores." in written
    assert "meanwhile: 1.5 to 1.5, this measurement included." in written


def test_the_page_says_where_we_are_behind():
    assert "2.00x, goal 1x: 8 us beside jax's 4 us" in page(results(8e-6, jax=measured(4e-6)))
    assert "3 us, goal 2 us" in page(results(3e-6, jax=measured(4e-6)))
    assert "every row is within its goal" in page(results(jax=measured(4e-6)))


def test_the_page_says_what_is_slower_than_the_share_of_a_copy_that_is_asked_for():
    taken, row = results(jax=measured(1.0)), find("softmax")
    sides = {**taken["rows"]["cond"]["sides"], "dy2st": measured(2 * row.at_least.bytes / 2e9, cold=0.1)}
    taken["rows"] = {"softmax": {**taken["rows"]["cond"], "sides": sides}}
    assert "softmax of 4096x1024: 0.50 of a copy's speed, goal 0.8; 0.03x the best peer" in page(taken)


def test_the_page_begins_with_the_steps_that_users_write():
    of_form = {"dy2st model": measured(6e-6, cold=0.5), "dy2st minimize": measured(4e-6), "dy2st eager": measured(9e-6)}
    taken = results(torch=measured(3e-6), **of_form)
    taken["rows"] = {"autoencoder": taken["rows"]["cond"]}
    written = page(taken)
    assert "| 6 us | 2 us | 4 us | 9 us | torch 3 us | 2 | 500 ms | 3 MB, 3 MB |" in written
    assert "model decorated: 2.00x, goal 1x: 6 us beside torch's 3 us" in written
    assert "model decorated: first step 500 ms, goal 300 ms" in written
    assert "eager: 3.00x torch's: 9 us, 3 us" in written
    assert "| 9 us | 3 us | 3 |" in written


def test_the_page_says_which_first_calls_take_longer_than_their_goal():
    written = page(results(jax=measured(4e-6)))
    assert "with nothing cached: 0 of 1. From the disk cache: 1 of 1 (cond 500 ms)." in written


def test_the_page_tells_why_a_peer_has_no_figure():
    sides = {"torch": "FAILED: TypeError: no", "jax": "not installed: jax", "onnxruntime": "took more than 5 s"}
    written = page(results(**{side: {"missing": why} for side, why in sides.items()}))
    assert "| fails | not measured | not installed | took more than 5 s |" in written
    assert "torch: TypeError: no" in written


def test_a_row_is_printed_as_lines():
    why = {"missing": "not installed: torch"}
    row = results(**{"torch": why, "torch compile": why, "jax": {"missing": "FAILED: no"}})["rows"]["cond"]
    printed = text(find("cond"), row).splitlines()
    assert printed[0].startswith("cond: ")
    assert printed[1].split()[:4] == ["dy2st", "median", "2", "us"]
    assert printed[-2].split() == ["jax", "FAILED:", "no"]
    assert printed[-1].strip() == "not installed: torch"
    assert len(printed) == 5


def test_the_picture_has_a_bar_for_each_ratio():
    drawn = svg([("one", "jax", 0.5, 1.0), ("two", "torch", 1000.0, 1.0)])
    assert drawn.count("<rect") == 3
    assert "0.5 jax" in drawn
    assert "1e+03 torch" in drawn


def test_the_exponent_is_that_of_the_upper_half():
    assert exponent({"1": 5.0, "2": 5.0, "4": 16.0, "8": 64.0}) == pytest.approx(2.0)
    assert exponent({"1": 5.0}) is None


def test_the_limit_is_arithmetic_or_memory_whichever_takes_longer():
    assert limit(Work(4e9, 0.0), CEILINGS) == 2.0
    assert limit(Work(0.0, 800.0), CEILINGS) == pytest.approx(1e-7)
    assert limit(Work(0.0, 4e9), CEILINGS) == 2.0
    assert limit(Work(), CEILINGS) is None


def test_a_time_has_a_unit_that_suits_it():
    assert [seconds(value) for value in (2.0, 0.25, 3e-6, 4e-9)] == ["2 s", "250 ms", "3 us", "4 ns"]
