"""Models that PaddlePaddle 2.6 and 3.3 saved (`tests/peers/paddle_files/` says how), each with inputs and outputs."""

import io
import zipfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
RELEASES = {"2.6": ".pdmodel", "3.3": ".json"}


RARE = {
    "inside", "comparing", "bits", "of_complex", "drawn", "stretching", "choosing", "boxes", "errors_of", "attending",
    "kept", "suppressing", "taken", "old_products", "old_shapes", "old_arithmetic",
}  # fmt: skip
"""Models of single operations, which need not be run in every way."""


def names(release):
    with zipfile.ZipFile(HERE / f"paddle_{release}.zip") as archive:
        return sorted(n.removesuffix(".npz") for n in archive.namelist() if n.endswith(".npz"))


def unpacked(release, name, folder):
    """Put the files of a model into a folder; return its path without a suffix, and what it gave."""
    with zipfile.ZipFile(HERE / f"paddle_{release}.zip") as archive:
        for suffix in (RELEASES[release], ".pdiparams"):
            if f"{name}{suffix}" in archive.namelist():
                (folder / f"{name}{suffix}").write_bytes(archive.read(f"{name}{suffix}"))
        found = dict(np.load(io.BytesIO(archive.read(f"{name}.npz"))))
    return str(folder / name), found


def runs(found):
    """Yield inputs by name, and outputs in order."""
    for k in range(9):
        inputs = {key.split(".in.")[1]: x for key, x in found.items() if key.startswith(f"{k}.in.")}
        if not inputs:
            return
        yield inputs, [found[f"{k}.out.{i}"] for i in range(len(found["outputs"]))]


def assert_same(made, wanted):
    made = list(made) if isinstance(made, (list, tuple)) else [made]
    assert len(made) == len(wanted)
    for i, (x, y) in enumerate(zip(made, wanted, strict=True)):
        x = x if isinstance(x, np.ndarray) else x.numpy()
        assert (x.shape, x.dtype) == (y.shape, y.dtype), i
        np.testing.assert_allclose(x.astype("float64"), y.astype("float64"), 1e-4, 1e-4, err_msg=f"output {i}")
