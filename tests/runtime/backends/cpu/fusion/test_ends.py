"""Which blocks end a run: updates in a branch write into the memory of the values before, as those outside do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ir.parser import parse
from dy2st.ir.program import Program
from dy2st.runtime.backends.cpu.fusion.grouping import schedule
from dy2st.runtime.backends.cpu.fusion.horizontal_fusion import Step
from dy2st.runtime.backends.cpu.fusion.in_place_updates import FinalBlock, branches, overwritten, with_cond_last
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.backends.donation import DonatedInputs
from dy2st.runtime.interpreter.planned import compile_plan
from tests.runtime.backends.cpu.emitter.test_overwriting import OPTIMIZERS, Training, close, native

__all__ = ["native"]

UPDATE = """
  then(%v: float32[32], %d: float32[32]) {
    %v.1: float32[32] = sub(%v, %d)
    %v.2: float32[32] = renew(%v.1, %v)
    return %v.2
  }"""
CHOICE = f"""
%w.1: float32[32] = cond(%fine, %w, %g) {{{UPDATE}
  else(%v: float32[32], %d: float32[32]) {{
    return %v
  }}
}}"""


def program(body: str, renewed: int = 0) -> Program:
    made = parse(f"program main\nfunc main(%w: float32[32], %g: float32[32], %fine: bool[]) {{\n{body}\n}}\n")
    made.renewed = ((renewed, 0),)
    return made


def ordered(made: Program) -> tuple[FinalBlock, list[Step]]:
    end = FinalBlock.of_program(made)
    assert end is not None
    return end, with_cond_last(end, schedule(made.block, (), end.renewed))


def places(made: Program) -> list[int]:
    """Return how many results each branch may write into the memory of arguments, in the order of the branches."""
    end, steps = ordered(made)
    return [len(overwritten(inner, schedule(inner.block, (), inner.renewed))) for inner in branches(end, steps)]


def run(made: Program, fine: bool) -> tuple[bool, list[np.ndarray]]:
    """Return whether the first argument was written into, and the results."""
    rng = np.random.default_rng(0)
    arguments = [rng.normal(size=32).astype("float32") for _ in range(2)]
    before = arguments[0].copy()
    want = compile_plan(made).run([*map(np.copy, arguments), np.array(fine)])
    inputs = DonatedInputs([*arguments, np.array(fine)], 2)
    got = NativePlan(made).run(inputs)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    return not np.array_equal(before, arguments[0]), got


# ---- which ----------------------------------------------------------------------------------------------------------
def test_a_branch_that_is_last_overwrites() -> None:
    made = program(f"{CHOICE}\nreturn %w.1")
    assert places(made) == [1, 0]
    assert [run(made, fine)[0] for fine in (True, False)] == [True, False]


def test_a_branch_inside_of_a_branch_does() -> None:
    inner = CHOICE.replace("%w.1:", "%v.3:").replace("cond(%fine, %w, %g)", "cond(%ok, %u, %h)")
    made = program(f"""
    %w.1: float32[32] = cond(%fine, %w, %g, %fine) {{
      then(%u: float32[32], %h: float32[32], %ok: bool[]) {{
        {inner}
        return %v.3
      }}
      else(%u: float32[32], %h: float32[32], %ok: bool[]) {{
        return %u
      }}
    }}
    return %w.1""")
    assert run(made, True)[0]
    assert not run(made, False)[0]


def test_other_steps_go_in_front() -> None:
    made = program(f"{CHOICE}\n%n: float32[32] = exp(%g)\nreturn %w.1, %n")
    _, steps = ordered(made)
    assert getattr(steps[-1], "name", None) == "cond"
    assert run(made, True)[0]


def test_steps_that_need_it_stay_behind() -> None:
    made = program(f"{CHOICE}\n%n: float32[32] = exp(%w.1)\nreturn %w.1, %n")
    assert places(made) == []
    assert not run(made, True)[0]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (f"{CHOICE}\nreturn %w.1, %w", "the value before is a result"),
        (f"%t: float32[32] = detach(%w)\n{CHOICE}\nreturn %w.1, %t", "so is it under another name"),
        (f"%t: float32[32, 1] = reshape(%w) {{shape=(32, 1)}}\n{CHOICE}\nreturn %w.1, %t", "so is a view of it"),
    ],
)  # fmt: skip
def test_what_is_read_otherwise_stays(body: str, why: str) -> None:
    made = program(body)
    assert places(made) in ([], [0, 0]), why
    assert not run(made, True)[0], why


def test_a_view_that_the_branch_returns_stays_as_it_was() -> None:
    taken = UPDATE.replace("%d: float32[32])", "%d: float32[32], %r: float32[32, 1])")
    taken = taken.replace("return %v.2", "return %v.2, %r")
    made = program(f"""
    %t: float32[32, 1] = reshape(%w) {{shape=(32, 1)}}
    %w.1: float32[32], %s: float32[32, 1] = cond(%fine, %w, %g, %t) {{
      {taken}
      else(%v: float32[32], %d: float32[32], %r: float32[32, 1]) {{
        return %v, %r
      }}
    }}
    return %w.1, %s""")
    assert places(made) == [0, 0]
    assert not run(made, True)[0]


def test_both_branches_may() -> None:
    other = UPDATE.replace("then", "else").replace("sub", "add")
    made = program(f"%w.1: float32[32] = cond(%fine, %w, %g) {{{UPDATE}{other}\n}}\nreturn %w.1")
    assert places(made) == [1, 1]
    assert run(made, True)[0]
    assert run(made, False)[0]


def test_one_that_somebody_holds_is_left_alone() -> None:
    made = program(f"{CHOICE}\nreturn %w.1")
    w = np.ones(32, "float32")
    plan, held = NativePlan(made), w[3:]
    (got,) = plan.run(DonatedInputs([w, np.ones(32, "float32"), np.array(True)], 2))
    assert held[0] == 1
    assert got[0] == 0


def test_a_view_among_the_results_is_copied_before_the_update() -> None:
    made = parse(f"""program main
    func main(%w: float32[32], %g: float32[32], %fine: bool[], %x: float32[4, 6]) {{
    {CHOICE}
    %t: float32[6, 4] = transpose(%x) {{perm=(1, 0)}}
    return %w.1, %t
    }}""")
    made.renewed = ((0, 0),)
    x = np.arange(24, dtype="float32").reshape(4, 6)
    w = np.ones(32, "float32")
    got = NativePlan(made).run(DonatedInputs([w, np.ones(32, "float32"), np.array(True), x], 2))
    np.testing.assert_array_equal(got[1], x.T)
    np.testing.assert_array_equal(w, np.zeros(32))


# ---- training --------------------------------------------------------------------------------------------------------
class Choosing(Training):
    """Training whose step is made under an `if` on tensors."""

    how = "finite"

    def run(self, x: Any) -> Any:
        loss = (self.net(x) ** 2).mean()
        loss.backward()
        if self.how == "accumulate":
            self.accumulate()
        elif paddle.isfinite(loss):
            self.optimizer.step()
            self.optimizer.clear_grad(set_to_zero=False)
        else:
            self.optimizer.clear_grad(set_to_zero=False)
        return loss

    def accumulate(self) -> None:
        if self.count % 3 == 2:
            self.optimizer.step()
            self.optimizer.clear_grad()
        self.count += 1

    def __init__(self, optimizer: str = "Adam", *, how: str = "finite", **options: Any):
        self.how, self.count = how, paddle.to_tensor(0)
        super().__init__(optimizer, **options)


def kept_in_place(make: Callable[[bool], Training], steps: int = 6) -> None:
    static, eager = make(True), make(False)
    for _ in range(2):
        static.step(static.x)
        eager.step(eager.x)
    static.alone()
    for _ in range(2):
        eager.step(eager.x)
    before = static.places()
    for _ in range(steps):
        static.step(static.x)
        eager.step(eager.x)
    assert static.places() == before
    close(static.arrays(), eager.arrays())


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_every_optimizer_under_a_choice(kind: str) -> None:
    names = {"nesterov": "Momentum", "amsgrad": "Adam"}
    kept_in_place(lambda static: Choosing(names.get(kind, kind), static=static, **OPTIMIZERS[kind]))


def test_accumulated_gradients() -> None:
    kept_in_place(lambda static: Choosing(how="accumulate", static=static))


def test_a_step_that_is_left_out_changes_nothing() -> None:
    training = Choosing().alone()
    before = training.arrays()
    for x in (np.full((3, 40), np.nan, "float32"), np.full((3, 40), np.inf, "float32")):
        training.step(paddle.to_tensor(x))
    assert all(a.tobytes() == b.tobytes() for a, b in zip(before, training.arrays(), strict=True))


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_large_ones_give_the_same_bits_on_any_number_of_threads(threads: int) -> None:
    found = list[list[np.ndarray]]()
    for count in (1, threads):
        paddle.set_num_threads(count)
        training = Choosing(size=300).alone()
        places = training.places()
        for _ in range(3):
            training.step(training.x)
        assert training.places() == places
        found.append(training.arrays())
    assert all(a.tobytes() == b.tobytes() for a, b in zip(*found, strict=True))


def test_every_cpu(each_cpu: str) -> None:
    kept_in_place(lambda static: Choosing(static=static), steps=2)


def test_an_error_in_the_branch_leaves_all_as_it_was() -> None:
    training = Choosing().alone()

    @paddle.jit.to_static(full_graph=True)
    def step(x: Any, limit: Any) -> Any:
        loss = (training.net(x) ** 2).mean()
        loss.backward()
        if paddle.isfinite(loss):
            training.optimizer.step()
            assert limit > 0, "too small"
        training.optimizer.clear_grad(set_to_zero=False)
        return loss

    step(training.x, paddle.to_tensor(1.0))
    with pytest.raises(AssertionError, match="too small"):
        step(training.x, paddle.to_tensor(-1.0))
    eager = Training(static=False)
    for _ in range(4):
        eager.step(eager.x)
    close(training.arrays(), eager.arrays())  # eager mode has stepped, too
