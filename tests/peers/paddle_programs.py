"""Run small programs with dy2st and with Paddle in one process, and report where their numbers differ.

Optimizers, schedules, recurrent and Transformer layers, resizing, metrics: what a table of calls does not show. It runs
in the environment of `paddle_values.py`:

    PYTHONPATH=. /tmp/peer/bin/python tests/peers/paddle_programs.py
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import paddle

import dy2st

R = np.random.default_rng(0)
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {}, "SGD decay": {"weight_decay": 0.1}, "Momentum": {}, "Momentum nesterov": {"use_nesterov": True},
    "Momentum rescale": {"rescale_grad": 0.5}, "Adagrad": {"initial_accumulator_value": 0.1}, "Adadelta": {},
    "RMSProp": {}, "RMSProp centered": {"centered": True, "momentum": 0.5, "rho": 0.8, "epsilon": 1e-3}, "Adam": {},
    "Adam amsgrad": {"amsgrad": True, "beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3}, "AdamW": {"weight_decay": 0.3},
    "Adamax": {"beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3}, "Lamb": {"lamb_weight_decay": 0.1}, "NAdam": {},
    "RAdam": {}, "Rprop": {}, "ASGD": {"batch_num": 2},
}  # fmt: skip
SCHEDULES: dict[str, tuple[Any, ...]] = {
    "NoamDecay": (16, 4), "PiecewiseDecay": ([2, 5], [1.0, 0.5, 0.1]), "NaturalExpDecay": (0.5, 0.1),
    "InverseTimeDecay": (0.5, 0.1), "ExponentialDecay": (0.5, 0.9), "PolynomialDecay": (0.5, 5, 0.1, 2.0),
    "PolynomialDecay cycle": (0.5, 4, 0.1, 1.0, True), "LinearWarmup": (0.5, 4, 0.0, 0.4), "StepDecay": (0.5, 3, 0.1),
    "MultiStepDecay": (0.5, [2, 6], 0.1), "LambdaDecay": (0.5, lambda e: 0.9**e), "LinearLR": (0.6, 4, 0.5, 1.0),
    "MultiplicativeDecay": (0.5, lambda e: 0.9), "CosineAnnealingDecay": (0.5, 4, 0.1), "CyclicLR": (0.1, 0.5, 2),
    "CyclicLR triangular2": (0.1, 0.5, 2, 3, "triangular2"),
    "CyclicLR exp_range": (0.1, 0.5, 2, None, "exp_range", 0.9),
    "CosineAnnealingWarmRestarts": (0.5, 2, 2, 0.1), "OneCycleLR": (1.0, 9, 10.0, 0.01, 0.3, "cos"),
    "OneCycleLR linear": (1.0, 9, 10.0, 0.01, 1 / 3, "linear", True),
}  # fmt: skip
LAYERS: dict[str, tuple[Callable[[Any], Any], tuple[tuple[int, ...], ...]]] = {
    "SimpleRNN": (lambda nn: nn.SimpleRNN(3, 4, 2, "bidirect", activation="relu"), ((2, 5, 3),)),
    "LSTM": (lambda nn: nn.LSTM(3, 4, 2, "bidirect"), ((2, 5, 3),)),
    "LSTM projected": (lambda nn: nn.LSTM(3, 4, proj_size=2), ((2, 5, 3),)),
    "GRU": (lambda nn: nn.GRU(3, 4, time_major=True), ((5, 2, 3),)),
    "LSTMCell": (lambda nn: nn.LSTMCell(3, 4), ((2, 3),)),
    "GRUCell": (lambda nn: nn.GRUCell(3, 4), ((2, 3),)),
    "SimpleRNNCell": (lambda nn: nn.SimpleRNNCell(3, 4), ((2, 3),)),
    "RNN": (lambda nn: nn.RNN(nn.GRUCell(3, 4), is_reverse=True), ((2, 5, 3),)),
    "BiRNN": (lambda nn: nn.BiRNN(nn.LSTMCell(3, 4), nn.LSTMCell(3, 4)), ((2, 5, 3),)),
    "MultiHeadAttention": (lambda nn: nn.MultiHeadAttention(8, 2), ((2, 3, 8), (2, 5, 8), (2, 5, 8))),
    "TransformerEncoder": (
        lambda nn: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, activation="gelu"), 2), ((2, 3, 8),)),
    "TransformerDecoder": (
        lambda nn: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, normalize_before=True), 2),
        ((2, 3, 8), (2, 5, 8))),
    "Transformer": (lambda nn: nn.Transformer(8, 2, 1, 1, 16), ((2, 3, 8), (2, 5, 8))),
    "Upsample": (lambda nn: nn.Upsample([7, 9], mode="bicubic"), ((2, 3, 4, 5),)),
    "UpsamplingBilinear2D": (lambda nn: nn.UpsamplingBilinear2D(scale_factor=2), ((2, 3, 4, 5),)),
    "UpsamplingNearest2D": (lambda nn: nn.UpsamplingNearest2D([7, 9]), ((2, 3, 4, 5),)),
}  # fmt: skip
RESIZED = [
    {"mode": mode, "size": size, "align_corners": corners, "align_mode": align}
    for mode in ("nearest", "bilinear", "bicubic", "area") for size in ([7, 9], [2, 3])
    for corners in (False, True) for align in (0, 1) if not (corners and mode in ("nearest", "area"))
]  # fmt: skip


def stepped(m: Any, name: str, options: dict[str, Any]) -> list[np.ndarray]:
    """Take five steps with an optimizer."""
    p = m.to_tensor(np.linspace(-1, 1, 6, dtype="float32"), stop_gradient=False)
    optimizer = getattr(m.optimizer, name.split()[0])(learning_rate=0.1, parameters=[p], **options)
    found = []
    for turn in range(5):
        (p * m.to_tensor(np.cos(np.arange(6) * (turn + 1)).astype("float32"))).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
        found.append(p.numpy().copy())
    return found


def scheduled(m: Any, name: str, arguments: tuple[Any, ...]) -> list[np.ndarray]:
    """Read ten rates of a schedule."""
    schedule, rates = getattr(m.optimizer.lr, name.split()[0])(*arguments), []
    for _ in range(9):
        rates.append(schedule())
        schedule.step()
    return [np.array(rates)]


def ran(m: Any, make: Callable[[Any], Any], shapes: tuple[tuple[int, ...], ...]) -> list[np.ndarray]:
    """Run a layer whose parameters are numbered, with its gradients."""
    layer = make(m.nn)
    if "ransformer" in type(layer).__name__:
        layer.eval()  # for dropout; Paddle's recurrent layers have gradients in training alone
    for number, p in enumerate(layer.parameters()):
        p.set_value(np.sin(np.arange(int(np.prod(p.shape))) + number).reshape(p.shape).astype("float32") / 2)
    inputs = [m.to_tensor(np.cos(np.arange(np.prod(s))).reshape(s).astype("float32")) for s in shapes]
    found = _flat(layer(*inputs))
    if layer.parameters():
        sum((t * t).sum() for t in found).backward()
    return [t.numpy() for t in found] + [p.grad.numpy() for p in layer.parameters() if p.grad is not None]


KNOWN = {"optimizer Momentum rescale": "Paddle's eager kernel forgets rescale_grad"}
"""Programs that Paddle runs in another way, and how."""


def _flat(value: Any) -> list[Any]:
    return [t for v in value for t in _flat(v)] if isinstance(value, (list, tuple)) else [value]


def programs() -> dict[str, Callable[[Any], list[np.ndarray]]]:
    """Return every program by its name."""
    image = R.normal(size=(2, 3, 4, 5)).astype("float32")
    made: dict[str, Callable[[Any], list[np.ndarray]]] = {}
    made |= {f"optimizer {n}": lambda m, n=n, o=o: stepped(m, n, o) for n, o in OPTIMIZERS.items()}
    made |= {f"schedule {n}": lambda m, n=n, a=a: scheduled(m, n, a) for n, a in SCHEDULES.items()}
    made |= {f"layer {n}": lambda m, f=f, s=s: ran(m, f, s) for n, (f, s) in LAYERS.items()}
    made |= {
        f"interpolate {how}": lambda m, how=how: [m.nn.functional.interpolate(m.to_tensor(image), **how).numpy()]
        for how in RESIZED
    }
    return made


def main() -> int:
    """Compare every program; return 1 where one differs."""
    wrong = 0
    for name, program in programs().items():
        try:
            theirs = program(paddle)
        except Exception as error:  # whatever Paddle refuses is no difference
            print(f"paddle refuses {name}: {str(error).strip().splitlines()[-1][:100]}")
            continue
        ours = program(dy2st)
        same = len(ours) == len(theirs) and all(
            a.shape == b.shape and np.allclose(a, b, rtol=2e-5, atol=1e-5) for a, b in zip(ours, theirs)
        )
        if not same and name in KNOWN:
            print(f"known difference {name}: {KNOWN[name]}")
        elif not same:
            wrong += 1
            worst = [float(np.abs(a - b).max()) for a, b in zip(ours, theirs) if a.shape == b.shape]
            print(f"differs {name}: {len(ours)} and {len(theirs)} results, by {worst}")
    print(f"{len(programs())} programs, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
