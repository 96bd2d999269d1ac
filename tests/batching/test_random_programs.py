"""Random Programs with control flow, lists and operations that may raise: over lanes as lane by lane."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dy2st.ir.program import Program
from tests.batching.lanes_of import check
from tests.passes.random_programs import inputs, programs
from tests.shares import examples

SETTINGS = settings(max_examples=examples(60), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@SETTINGS
@given(programs(), st.lists(st.booleans(), min_size=5, max_size=5).filter(any), st.booleans())
def test_a_program_over_lanes_is_the_program_of_each_lane(program: Program, batched: list[bool], known: bool) -> None:
    lanes = [inputs(3, 2, True), inputs(3, 0, False), inputs(3, 1, True)]
    for i, on in enumerate(batched):
        for k, one in enumerate(lanes):
            one[i] = one[i] * (1 + k) if on and i < 3 else one[i] if on else lanes[0][i]
    check(program, lanes, batched, known)
