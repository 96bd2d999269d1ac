"""OpenBLAS, which comes with NumPy's wheels, as addresses that native code calls.

Where NumPy was built with another library there is none, and a product of matrices is a call of `eval`.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import numpy as np

FUNCTIONS = ("sgemm", "dgemm")
"""What a context's table holds, in this order."""
ROW_MAJOR, PLAIN, TRANSPOSED = 101, 111, 112


@functools.cache
def library() -> ctypes.CDLL | None:
    """Return the OpenBLAS of NumPy's wheel, with 64-bit ints; None where there is none."""
    folder = Path(np.__file__).parent.parent / "numpy.libs"
    found = sorted(folder.glob("libscipy_openblas64_*"))
    return ctypes.CDLL(str(found[0])) if found else None


def address(name: str) -> int | None:
    """Return the address of a function of CBLAS (`sgemm`, `dgemv`), None where it is not there."""
    blas = library()
    function = getattr(blas, f"scipy_cblas_{name}64_", None) if blas is not None else None
    return ctypes.cast(function, ctypes.c_void_p).value if function is not None else None
