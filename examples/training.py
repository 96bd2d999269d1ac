"""What the recipes share: a loop with a bar, curves, checkpoints, a resume that changes nothing, and an early stop.

A recipe is a function `recipe(folder, steps, resume)` that trains something and returns its `Curves`. The random
numbers of a step depend on its number alone, so a training that was killed and goes on from its last checkpoint has the
curve of one that nobody disturbed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from drawing import log_plot, plot
from showing import progress

import dy2st as paddle

CHECKPOINT, BEST = "last.pdstate", "best.pdparams"


@dataclass(frozen=True)
class Goal:
    """A figure that is measured on the way, and how good it should become."""

    figure: str
    value: float
    highest: bool = True
    patience: int = 1000
    """After how many measurements without a better one training stops."""
    stops: bool = True
    """Whether training stops where the figure is good enough."""

    def better(self, figure: float, other: float) -> bool:
        """Say whether one figure is nearer the goal than another."""
        return figure > other if self.highest else figure < other

    def reached(self, figure: float) -> bool:
        """Say whether a figure is as good as the goal."""
        return not self.better(self.value, figure)


@dataclass
class Curves:
    """The loss at each step, the figure at each measurement, and the last one where other data were kept for that."""

    losses: list[float] = field(default_factory=list)
    figures: list[float] = field(default_factory=list)
    seconds: float = 0.0
    final: float | None = None

    def reached(self, goal: Goal) -> float:
        """Return the figure that the best model has."""
        return self.best(goal) if self.final is None else self.final

    def best(self, goal: Goal) -> float:
        """Return the best figure."""
        return (max if goal.highest else min)(self.figures)

    def ended(self, goal: Goal) -> bool:
        """Say whether the goal is reached, or nothing has become better for as long as it has patience."""
        if not self.figures:
            return False
        age = len(self.figures) - 1 - self.figures.index(self.best(goal))
        return (goal.stops and goal.reached(self.figures[-1])) or age >= goal.patience

    def draw(self, folder: Path, goal: Goal) -> list[Path]:
        """Write pictures of both curves; return their paths."""
        made = [folder / "loss.svg", folder / "figure.svg"]
        titles = {"loss": self.losses, goal.figure: self.figures}
        for path, (title, curve) in zip(made, titles.items(), strict=True):
            draw = log_plot if min(curve) > 0 and max(curve) > 10 * min(curve) else plot
            draw(path, title, {title: curve}, "step" if title == "loss" else "measurement")
        return made


@dataclass
class Keeper:
    """Writes and reads checkpoints of what has a `state_dict`: a dict of layers and optimizers, the model first."""

    parts: Mapping[str, Any]
    goal: Goal
    folder: Path
    curves: Curves = field(default_factory=Curves)

    def resume(self) -> None:
        """Go back to the last checkpoint; FileNotFoundError where there is none."""
        kept = paddle.load(str(self.folder / CHECKPOINT))
        for name, part in self.parts.items():
            part.set_state_dict(kept["parts"][name])
        self.curves = Curves(**kept["curves"])

    def keep(self, figure: float) -> bool:
        """Note a figure and write a checkpoint; say whether training may stop here."""
        if not (self.curves.figures and self.goal.better(self.curves.best(self.goal), figure)):
            paddle.save(self._model().state_dict(), str(self.folder / BEST))
        self.curves.figures.append(figure)
        states = {name: part.state_dict() for name, part in self.parts.items()}
        paddle.save({"parts": states, "curves": asdict(self.curves)}, str(self.folder / CHECKPOINT))
        return self.curves.ended(self.goal)

    def take_best(self) -> None:
        """Give the model the weights with which the figure was best."""
        self._model().set_state_dict(paddle.load(str(self.folder / BEST)))

    def _model(self) -> Any:
        return next(iter(self.parts.values()))


def train(
    step: Callable[[int], paddle.Tensor], measure: Callable[[], float], keeper: Keeper, steps: int, every: int
) -> Curves:
    """Run step number 0, 1, ... to `steps`, measure each `every` steps; return the curves, and leave the best model.

    Where the keeper has resumed, the numbers go on behind its checkpoint.
    """
    curves, losses, start = keeper.curves, [], time.perf_counter()
    begin, before = len(curves.losses), curves.seconds
    if curves.ended(keeper.goal):
        return curves
    for number in progress(range(begin, steps), keeper.goal.figure):
        paddle.seed(number)
        losses.append(step(number))
        if (number + 1) % every == 0 or number + 1 == steps:
            curves.losses += map(float, losses)
            losses.clear()
            curves.seconds = before + time.perf_counter() - start
            if keeper.keep(measure()):
                break
    keeper.take_best()
    return curves


def run(recipe: Callable[..., Curves], goal: Goal, name: str, steps: int) -> None:
    """Run a recipe from the command line; print the figure that it reached, and where its pictures are."""
    parser = argparse.ArgumentParser(prog=name)
    parser.add_argument("--steps", type=int, default=steps, help="how many at most")
    parser.add_argument("--out", type=Path, default=Path("recipes_output") / name, help="a folder for what it writes")
    parser.add_argument("--resume", action="store_true", help="go on after the last checkpoint in that folder")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    curves = recipe(options.out, options.steps, options.resume)
    how = "at least" if goal.highest else "at most"
    print(f"{goal.figure}: {curves.reached(goal):.4g} (wanted: {how} {goal.value:g}) "
          f"after {len(curves.losses)} steps in {curves.seconds:.1f} s")  # fmt: skip
    for picture in curves.draw(options.out, goal):
        print(f"curve: {picture.resolve()}")
