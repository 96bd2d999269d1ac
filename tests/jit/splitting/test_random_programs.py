"""Random programs with steps that no Program has, put in anywhere: split, they do what they do eagerly."""

import random

import pytest

from tests.generator.outcomes import calls_of, difference
from tests.generator.statements import A_SEED, program_of

STEPS = (
    "t = t * (1.0 if t.tolist() else 2.0)",
    "x = x * float(t.numpy() > 0.0)",
    "print(x.numpy().size)",
    "t = t + len({round(float(x.numpy().sum()), 2): 1}) * 0.5",
    "n = n + int(x.numpy().size > 2)",
)


def with_steps(text: str, r: random.Random) -> str:
    """Put one to three steps into a program, each before a line of its body."""
    lines = text.split("\n")
    for _ in range(r.randint(1, 3)):
        at = r.randrange(2, len(lines) - 1)
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        found = [*lines[:at], indent + r.choice(STEPS), *lines[at:]]
        try:
            compile("\n".join(found), "program", "exec")
        except SyntaxError:  # before an `else`
            continue
        lines = found
    return "\n".join(lines)


@pytest.mark.parametrize("first", [9001, 9011])
def test_random_programs_with_steps_between_do_what_they_do_eagerly(first: int) -> None:
    for seed in range(first, first + 10):
        text = with_steps(program_of(2 * A_SEED + 7 * seed), random.Random(seed))
        found = difference(text, calls_of(seed))
        assert found is None or "refused" in found.static, str(found)
