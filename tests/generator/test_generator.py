"""The generator: a seed names a program for ever, what differs is made small, and seeded programs are as eager ones."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import dy2st as paddle
from dy2st.ir.opdef import REGISTRY
from tests.generator import operations
from tests.generator.__main__ import Tally, run_chunk
from tests.generator.choices import seeded
from tests.generator.coverage import ELSEWHERE, NOT_THERE, POSITIONS, holes, holes_of_kinds, positions
from tests.generator.outcomes import CALLS, calls_of, difference, function_of, outcome
from tests.generator.shrinking import smaller_programs
from tests.generator.statement_kinds import KINDS, kinds_of
from tests.generator.statements import IDIOMS, Programs, program_of, text_of
from tests.generator.ways import COLUMNS, TURNS, WAYS, ways_of
from tests.generator.world import Box
from tests.shares import examples

FOUND = sorted((Path(__file__).parent / "found").glob("*.txt"))


def agree(text: str, seed: int) -> None:
    found = difference(text, calls_of(seed))
    assert found is None or "refused" in found.static, str(found)


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_a_program_that_differed_once_is_as_eager(path, backend, monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", backend)
    text = path.read_text()
    found = difference(text, calls_of(int(text.split()[2])))
    assert found is None, found.static.get("refused", str(found))


def test_seeded_programs_are_as_eager_ones():
    for seed in range(examples(40)):
        agree(program_of(seed), seed)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(len(TURNS)))
def test_programs_are_as_eager_ones_in_every_kind_of_process(chunk, tmp_path):
    tally, first = Tally(), 1_000 * (chunk + 1)
    run_chunk(first, first + 20, ways_of(chunk, every=False), tally, tmp_path)
    assert not tally.faults, "\n".join(str(fault["text"]) for fault in tally.faults)
    assert sum(tally.counts.values()) == len(TURNS[chunk]) * 20
    assert tally.ran["if", TURNS[chunk][0]]
    assert tally.seen["add", "loop"]


def test_a_seed_names_one_program():
    assert [program_of(seed) for seed in range(20)] == [program_of(seed) for seed in range(20)]
    assert len({program_of(seed) for seed in range(200)}) > 190


def test_programs_of_seeds_parse():
    for seed in range(300):
        assert isinstance(ast.parse(program_of(seed)).body[0], ast.FunctionDef)


def test_each_form_of_an_operation_runs():
    """A form that eager mode refuses would test nothing."""
    for form in (*operations.VECTORS, *operations.NUMBERS, *operations.DRAWS):
        body = form.format(a="a", b="b", s="t")
        text = f"def program(x, t, n, rows, box):\n    a, b = x * 1.0, x * 2.0\n    return {body}\n"
        agree(text, 0)
        assert "error" not in eager_outcome(text), form


def test_each_idiom_runs():
    """One that eager mode refuses would test nothing."""
    for form in IDIOMS:
        seen = [eager_outcome(text_of(Programs(seeded(k)).idiom(form))) for k in range(8)]
        assert any("error" not in one for one in seen), (form, seen[0]["error"])


def eager_outcome(text):
    return outcome(function_of(text), CALLS[1], Box())


def test_smaller_programs_are_programs_and_smaller():
    text = program_of(4)
    candidates = list(smaller_programs(text))
    assert candidates
    assert all(len(ast.unparse(ast.parse(one))) < len(text) for one in candidates)


def test_ways_that_follow_another_name_it():
    assert all(way.after in ("", "auto") for way in WAYS.values())
    assert [way.name for way in ways_of(0, every=False)] == ["auto", "again"]
    assert {name for turn in TURNS for name in turn} == set(WAYS)
    assert {column for way in WAYS.values() for column in way.columns} == {*COLUMNS} - {"native-60", "loaded"}


def test_positions_of_an_operation_are_counted():

    @paddle.jit.to_static
    def function(x):
        total = x
        for i in range(int(x.sum())):
            if x[0] > i:
                total = paddle.tanh(total)
        return total

    function(paddle.to_tensor([1.0, 2.0]))
    seen = positions(function.concrete_program.main_program, order=0)
    assert seen["tanh", "loop"] == seen["tanh", "branch"] == seen["tanh", "early"] == 1
    assert seen["tanh", "carried"] == seen["tanh", "derived"] == 0
    assert {"tanh carried", "tanh derived", "tanh second", "softmax anywhere"} <= set(holes(seen))
    assert all(name in REGISTRY for name, _ in seen)
    derived = positions(function.concrete_program.main_program, order=2)
    assert derived["tanh", "derived"] == derived["tanh", "second"] == 1
    assert derived["gt", "derived"] == 0


def test_what_explains_holes_names_ops_kinds_and_positions():
    """An explanation of nothing hides a hole one day."""
    assert {*" ".join(ELSEWHERE.values()).split()} <= set(REGISTRY)
    for hole in ", ".join(NOT_THERE.values()).split(", "):
        name, place = hole.split()
        assert (name in REGISTRY and place in POSITIONS) or (name in KINDS and place in COLUMNS), hole


def test_kinds_of_statements_are_read_from_the_text():
    text = "def program(x):\n    for i in x:\n        while i:\n            return i[1:]\n    return x\n"
    assert kinds_of(text) == {"for", "while", "nested-loop", "return", "return-in-loop", "view"}
    assert all(kinds_of(program_of(seed)) <= set(KINDS) for seed in range(300))
    assert "for auto" in holes_of_kinds(Counter())
    assert "for auto" not in holes_of_kinds(Counter({("for", "auto"): 1}))
