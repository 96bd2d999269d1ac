"""Random sessions of training: eager mode says the same with Programs behind it and op by op."""

import ast

import pytest

from tests.generator import sessions
from tests.generator.session_runs import OP_BY_OP, difference, said, shrink
from tests.generator.sessions import session_of
from tests.shares import examples


@pytest.mark.parametrize("chunk", range(4))
def test_sessions_say_the_same_with_programs_and_op_by_op(chunk):
    for seed in range(chunk * 1_000, chunk * 1_000 + examples(5)):
        assert not difference(session_of(seed), seed)[0], seed


def test_a_seed_names_one_session():
    texts = [session_of(seed) for seed in range(200)]
    assert texts == [session_of(seed) for seed in range(200)]
    assert len(set(texts)) == 200
    assert all(isinstance(ast.parse(text).body[0], ast.FunctionDef) for text in texts)


def test_most_steps_of_sessions_run():
    logs = [said(session_of(seed), OP_BY_OP) for seed in range(30)]
    errors = [one for log in logs for one in log if isinstance(one, tuple)]
    assert not [one for one in errors if one[0] == "ended"]
    assert len(errors) < sum(map(len, logs)) / 6


def test_each_form_stands_in_some_session():
    """A form that no session has would test nothing."""
    texts = "\n".join(session_of(seed) for seed in range(3_000))
    lines = {line.strip() for line in texts.split("\n")}
    for forms in (sessions.FORWARD, sessions.LOSSES, sessions.BACKWARD, sessions.STEP):
        assert all(form.split("\n")[0] in lines for form in forms)
    assert all(model in texts for model in sessions.MODELS)


def test_a_session_that_differs_is_made_small(monkeypatch):
    text = "def program(w):\n    w.start('float32')\n    for i in range(3):\n        w.say(i)\n        w.say(w.odd())\n"
    turns = iter(range(10_000))
    monkeypatch.setattr("tests.generator.session_runs.World.odd", lambda self: next(turns), raising=False)
    assert "at 1 of" in difference(text, 0)[0]
    assert shrink(text, 0, 20.0) == "def program(w):\n    w.say(w.odd())\n"
