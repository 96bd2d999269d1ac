"""What figures were taken on: versions and cores, nothing that names a machine."""

import importlib.metadata
import os
import platform

PACKAGES = ("dy2st", "numpy", "llvmlite", "torch", "jax", "onnxruntime", "paddlepaddle")


def facts() -> dict[str, str]:
    """Say what runs here."""
    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    found["cores"] = str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
