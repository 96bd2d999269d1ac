"""How each package runs a function: the forms that its own users would write.

dy2st and paddle share their source, because their names are the same.
"""

import importlib
from collections.abc import Callable
from typing import Any

from benchmarks.suite.workload import Arrays, Job, Side

Make = Callable[..., Job]  # (package, compile, arrays) -> job; for jax and torch alike


def with_paddle(make: Make, eager: bool = True) -> dict[str, Side]:
    """Make the sides of dy2st and paddle, compiled and eager, from one function of (paddle, to_static, arrays)."""

    def compiled(package: str) -> Side:
        def side(given: Arrays) -> Job:
            paddle = importlib.import_module(package)
            return make(paddle, lambda function: paddle.jit.to_static(function, full_graph=True), given)

        return side

    def plain(package: str) -> Side:
        return lambda given: make(importlib.import_module(package), lambda function: function, given)

    sides = {"dy2st": compiled("dy2st"), "paddle to_static": compiled("paddle")}
    return sides | ({"dy2st eager": plain("dy2st"), "paddle": plain("paddle")} if eager else {})


def with_torch(make: Make, eager: bool = True, compiled: bool = True) -> dict[str, Side]:
    """Make the sides of torch from one function of (torch, compile, arrays)."""

    def plain(given: Arrays) -> Job:
        return make(importlib.import_module("torch"), lambda function: function, given)

    def by_inductor(given: Arrays) -> Job:
        torch = importlib.import_module("torch")
        return make(torch, torch.compile, given)

    return ({"torch": plain} if eager else {}) | ({"torch compile": by_inductor} if compiled else {})


def with_jax(make: Callable[[Any, Arrays], Job], double: bool = False) -> dict[str, Side]:
    """Make the side of jax from a function of (jax, arrays); results are waited for."""

    def side(given: Arrays) -> Job:
        jax = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", double)
        job = make(jax, given)
        return lambda: jax.block_until_ready(job())

    return {"jax": side}


def with_onnx(make: Callable[[Arrays], tuple[Any, Any]]) -> dict[str, Side]:
    """Make the side of onnxruntime from a function that gives a model and what it is fed with, or a list of that."""

    def side(given: Arrays) -> Job:
        onnxruntime = importlib.import_module("onnxruntime")
        model, fed = make(given)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        if isinstance(fed, list):
            return lambda: [session.run(None, one) for one in fed]
        return lambda: session.run(None, fed)

    return {"onnxruntime": side}


def with_numpy(make: Callable[[Arrays], Job]) -> dict[str, Side]:
    """Make the side of NumPy, written by hand."""
    return {"numpy": make}


def without_gradients(paddle: Any, function: Callable[..., Any], *args: Any) -> Job:
    """Return what calls a function of Paddle's without recording."""

    def job() -> Any:
        with paddle.no_grad():
            return function(*args)

    return job


def inference(torch: Any, function: Callable[..., Any], *args: Any) -> Job:
    """Return what calls a function of torch's in inference mode."""

    def job() -> Any:
        with torch.inference_mode():
            return function(*args)

    return job
