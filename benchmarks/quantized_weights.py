"""Measure linear layers with weights of 8 and 4 bits beside float32 and onnxruntime's int8, on one thread.

PYTHONPATH=. python benchmarks/quantized_weights.py
Least processor time of a call, by turns, in microseconds. onnxruntime rounds inputs to 8 bits as well
(`quantize_dynamic`, one scale for each output); ours computes in float32.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = os.environ["DY2ST_NUM_THREADS"] = "1"

import logging
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime
from onnxruntime.quantization import quantize_dynamic

import dy2st as paddle

SIZES = ((512, 512), (1024, 4096), (4096, 4096))
BATCHES = (1, 32)
ROUNDS = 30


def session(path: Path) -> Callable[[np.ndarray], object]:
    """Return a call of onnxruntime on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    made = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    (name,) = (one.name for one in made.get_inputs())
    return lambda x: made.run(None, {name: x})


def least(calls: Sequence[Callable[[], object]]) -> list[float]:
    """Return the least processor time of each call, in microseconds."""
    found = [float("inf")] * len(calls)
    for call in calls:
        for _ in range(3):
            call()
    for _ in range(ROUNDS):
        for i, call in enumerate(calls):
            start = time.thread_time()
            for _ in range(3):
                call()
            found[i] = min(found[i], (time.thread_time() - start) / 3 * 1e6)
    return found


def main() -> None:
    print("| in x out | batch | float32 | int8 | int4, groups of 64 | onnxruntime float32 | onnxruntime int8 |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for inputs, outputs in SIZES:
            stem = Path(folder) / f"{inputs}"
            spec = [paddle.static.InputSpec([None, inputs])]
            path = paddle.jit.save(paddle.nn.Linear(inputs, outputs).eval(), stem, input_spec=spec)
            model = paddle.jit.load(path)
            ours = [
                model,
                paddle.quantization.quantize_program(model),
                paddle.quantization.quantize_program(model, bits=4, group_size=64),
            ]
            exported = Path(paddle.onnx.export(model, f"{stem}.onnx"))
            rounded = Path(f"{stem}.int8.onnx")
            quantize_dynamic(exported, rounded, per_channel=True)
            theirs = [session(exported), session(rounded)]
            for batch in BATCHES:
                x = np.random.default_rng(0).normal(size=(batch, inputs)).astype(np.float32)
                t = paddle.to_tensor(x)
                with paddle.no_grad():
                    calls = [partial(f, t) for f in ours] + [partial(f, x) for f in theirs]
                    times = " | ".join(f"{n:,.0f}" for n in least(calls))
                print(f"| {inputs} x {outputs} | {batch} | {times} |", flush=True)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    main()
