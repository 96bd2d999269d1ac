"""What the examples of models share: a training step as one Program, and the loop that runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import dy2st as paddle

Loss = Callable[..., paddle.Tensor]


def training_step(loss: Loss, optimizer: paddle.optimizer.Optimizer, static: bool = True) -> Loss:
    """Return the function that takes a batch, learns from it and returns its loss.

    Under `static` the whole step is one Program: the model, the gradient and the update of the optimizer.
    """

    def step(*batch):
        value = loss(*batch)
        value.backward()
        optimizer.step()
        optimizer.clear_grad()
        return value

    return paddle.jit.to_static(step, full_graph=True) if static else step


def fit(step: Loss, batches: Iterable[Sequence[paddle.Tensor]]) -> list[float]:
    """Run the step on each batch; return the losses."""
    return [float(step(*batch)) for batch in batches]


def report(title: str, losses: Sequence[float]) -> None:
    """Print how far the loss fell, as means over its first and last tenth."""
    tenth = max(1, len(losses) // 10)
    first, last = sum(losses[:tenth]) / tenth, sum(losses[-tenth:]) / tenth
    print(f"{title}: loss {first:.4f} -> {last:.4f} in {len(losses)} steps")
