"""`paddle.version`: the release of Paddle whose interface this is, and of dy2st itself (`paddle.version.dy2st`)."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from dy2st.missing import missing_in

__getattr__ = missing_in(__name__)

full_version = "3.3.0"
major, minor, patch = full_version.split(".")
rc = "0"
commit, istaged, with_pip_cuda_libraries = "unknown", True, "OFF"
try:
    dy2st = version("dy2st")
except PackageNotFoundError:  # a checkout on the path, which nobody has installed
    dy2st = "unknown"


def cuda() -> str:
    """Return "False": nothing is compiled against one version of CUDA."""
    return "False"


cudnn = nccl = xpu = cuda


def show() -> None:
    """Print the release of the interface, and of dy2st.

    >>> show()
    full_version: 3.3.0
    major: 3
    minor: 3
    patch: 0
    rc: 0
    """
    for name in ("full_version", "major", "minor", "patch", "rc"):
        print(f"{name}: {globals()[name]}")
