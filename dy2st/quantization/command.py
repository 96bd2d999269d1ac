"""The command `dy2st quantize`: a saved model with weights of 8 or 4 bits, written beside it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dy2st.files import program_file
from dy2st.jit import load, save
from dy2st.quantization.programs import quantize_program
from dy2st.runtime.eager.tape.grad_mode import no_grad
from dy2st.runtime.eager.tensor import Tensor
from dy2st.serving.entries import named_outputs


def options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", metavar="MODEL", help="a file that jit.save wrote")
    parser.add_argument("-o", "--output", metavar="OUT", type=Path, required=True, help="the file to write")
    parser.add_argument("--bits", type=int, choices=(4, 8), default=8, help="of a weight (default: %(default)s)")
    parser.add_argument("--group", type=int, default=-1, metavar="N", help="a scale for each N inputs of an output")
    parser.add_argument("--calibration", metavar="X.npz", type=Path,
                        help="inputs by name, samples along the first axis: round inputs of products too")  # fmt: skip
    parser.add_argument("--activations", choices=("absmax", "percentile", "kl"), default="percentile",
                        help="how the data say what the largest input is (default: %(default)s)")  # fmt: skip
    parser.add_argument("--batch", type=int, default=32, metavar="N", help="samples at a time (default: %(default)s)")
    parser.set_defaults(command=run)


def run(given: argparse.Namespace) -> None:
    """Write the model, and say what it has become."""
    if given.batch < 1:
        raise ValueError(f"--batch is a number of samples, not {given.batch}")
    model = load(given.model)
    batches = None if given.calibration is None else _batches(given.calibration, given.batch)
    found = quantize_program(model, batches, bits=given.bits, group_size=given.group, activations=given.activations)
    target = save(found, str(given.output).removesuffix(program_file.SUFFIX))
    before, after = program_file.found(given.model).stat().st_size, target.stat().st_size
    print(f"{target}: {after:,} bytes of {before:,}")
    for name, error in _errors(model, found, batches or ()).items():
        print(f"{name}: differs by {error:.3%} of its size on the calibration data")


def _batches(path: Path, size: int) -> list[dict[str, np.ndarray]]:
    """Return the samples of a file in batches."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    counts = {len(array) if array.ndim else -1 for array in arrays.values()}
    if len(counts) != 1 or counts & {-1, 0}:
        raise ValueError(f"{path}: arrays of one number of samples are needed, not {sorted(counts)}")
    (count,) = counts
    return [{name: a[i : i + size] for name, a in arrays.items()} for i in range(0, count, size)]


def _errors(before: Any, after: Any, batches: Any) -> Mapping[str, float]:
    """Return by how much outputs differ, of their size: roots of sums of squares."""
    squares: dict[str, list[float]] = {}
    before.eval()
    after.eval()
    for batch in batches:
        inputs = {name: Tensor(array) for name, array in batch.items()}
        with no_grad():
            one, other = (dict(named_outputs(m(**inputs), "output")) for m in (before, after))
        for name, x in one.items():
            sums = squares.setdefault(name, [0.0, 0.0])
            sums[0] += float(np.sum((np.asarray(other[name], np.float64) - x) ** 2))
            sums[1] += float(np.sum(np.asarray(x, np.float64) ** 2))
    return {name: (d / s) ** 0.5 if s else 0.0 for name, (d, s) in squares.items()}
