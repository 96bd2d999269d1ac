"""One side of a comparison, run in a process of its own: cases come in as JSON, a line a case goes out.

    python -m benchmarks.projects.side paddle|dy2st PROJECT KEPT < cases.json

The side of PaddlePaddle keeps weights, inputs, outputs and gradients as KEPT/<case>.npz; that of dy2st reads them and
compares. Nothing here imports dy2st unless it stands for `paddle`.
"""

import faulthandler
import importlib
import json
import linecache
import random
import re
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.projects.alias import PaddleIsDy2st, Stubs, absent_packages

FORWARD, GRADIENT = 1e-4, 1e-3
MEMORY = 8 << 30
"""So many bytes of addresses a process may have: examples of a project may be as large as what it is for."""


def main() -> None:
    side, project, kept = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    out, sys.stdout = sys.stdout, sys.stderr  # what a project prints is not for the reader of the lines
    sys.path.insert(0, str(project))
    if side == "dy2st":
        sys.meta_path.insert(0, PaddleIsDy2st())
    sys.meta_path.append(Stubs(absent_packages(project)))
    for case in json.load(sys.stdin):
        start = time.perf_counter()
        print(json.dumps({"starts": case["name"]}), file=out, flush=True)
        if case["kind"] == "module":
            stages = {"import": _reason(lambda case=case: _import(case["module"]))}
        else:
            stages = (_by_paddle if side == "paddle" else _by_dy2st)(case, kept / (slug(case["name"]) + ".npz"))
        print(json.dumps({"case": case["name"], "stages": stages, "seconds": time.perf_counter() - start}), file=out)
        out.flush()


def _import(module: str) -> None:
    importlib.import_module(module)


def _by_paddle(case: dict[str, Any], file: Path) -> dict[str, str]:
    """Run a case by PaddlePaddle, and keep what the other side compares with."""
    arrays: dict[str, np.ndarray] = {}

    def run() -> None:
        model, inputs = _made(case)
        arrays.update({f"weight {k}": v.numpy() for k, v in model.state_dict().items()})
        arrays.update({f"input {i}": t.numpy() for i, t in enumerate(_tensors(inputs))})
        arrays.update(_run(model, inputs) if not case.get("learns") else _step(model, inputs))

    stages = {"valid": _reason(run)}
    if not stages["valid"]:
        np.savez(file, **arrays)
    return stages


def _by_dy2st(case: dict[str, Any], file: Path) -> dict[str, str]:
    """Run a case here stage by stage; a stage that needs one that failed is left out."""
    import paddle

    known = dict(np.load(file))
    if case.get("learns"):
        return _learnt(case, known)
    made: list[Any] = []
    stages = {"build": _reason(lambda: made.extend(_made(case)))}
    if stages["build"]:
        return stages
    model, inputs = made
    stages["build"] = _reason(lambda: _same_names(model, known))
    if stages["build"]:
        return stages
    _load(model, inputs, known)
    eager: dict[str, np.ndarray] = {}
    stages["forward"] = _reason(lambda: eager.update(_run(model, inputs, gradients=False)))
    if stages["forward"]:
        return stages
    stages["forward"] = _reason(lambda: _compare(eager, known, "output"))
    stages["gradients"] = _reason(lambda: eager.update(_run(model, inputs)) or _compare(eager, known, "gradient"))
    static = paddle.jit.to_static

    def in_program(full_graph: bool) -> None:
        _load(model, inputs, known)
        compiled = static(lambda *args: model(*args), full_graph=full_graph)
        with _no_fallback():
            result = _run(compiled, inputs, gradients=not full_graph and not stages["gradients"], of=model)
        _compare(result, eager, "output")
        if not full_graph and not stages["gradients"]:
            _compare(result, eager, "gradient")

    stages["static"] = _reason(lambda: in_program(False))
    stages["full_graph"] = _reason(lambda: in_program(True))
    stages["save"] = _reason(lambda: _saved(model, inputs, eager))
    stages["train"] = _reason(lambda: _trained(model, inputs, known))
    return stages


def _learnt(case: dict[str, Any], known: dict[str, np.ndarray]) -> dict[str, str]:
    """Compare a whole training step: what it returns (forward), and the weights after it (gradients)."""
    import paddle

    stages: dict[str, str] = {}
    results: dict[str, dict[str, np.ndarray]] = {}

    def step(stage: str, compiled: Callable[[Any], Any], *compared: str) -> None:
        model, inputs = _made(case)
        _same_names(model, known)
        _load(model, inputs, known)
        stages["build"] = ""
        with _no_fallback():
            results[stage] = _step(model, inputs, compiled(lambda *given: model(*given)))
        for kind in compared:
            _compare(results[stage], results["forward"], kind)

    stages["build"] = stages["forward"] = _reason(lambda: step("forward", lambda f: f))
    if stages["forward"]:
        return {"build": stages["build"]} if stages["build"] else {"build": "", "forward": stages["forward"]}
    if not case.get("random"):
        stages["forward"] = _reason(lambda: _compare(results["forward"], known, "output"))
        stages["gradients"] = _reason(lambda: _compare(results["forward"], known, "gradient"))
    static = paddle.jit.to_static
    stages["static"] = _reason(lambda: step("static", static, "output", "gradient"))
    stages["full_graph"] = _reason(
        lambda: step("full_graph", lambda f: static(f, full_graph=True), "output", "gradient")
    )
    return stages


def _step(model: Any, inputs: Any, function: Any = None) -> dict[str, np.ndarray]:
    _seed()
    model.train()
    outputs = (function or model)(*inputs)
    result = {f"output {i}": np.asarray(t) for i, t in enumerate(_leaves(outputs))}
    return result | {f"gradient {k}": v.numpy() for k, v in model.state_dict().items()}


def _leaves(x: Any) -> list[Any]:
    return [leaf for item in x for leaf in _leaves(item)] if isinstance(x, (list, tuple)) else [x]


def _saved(model: Any, inputs: Any, eager: dict[str, np.ndarray]) -> None:
    import paddle

    model.eval()
    with tempfile.TemporaryDirectory() as folder:
        spec = _mapped(paddle.static.InputSpec.from_tensor, list(inputs))
        paddle.jit.save(model, f"{folder}/model", input_spec=spec)
        _compare(_run(paddle.jit.load(f"{folder}/model"), inputs, gradients=False), eager, "output")


def _trained(model: Any, inputs: Any, known: dict[str, np.ndarray]) -> None:
    """Compare a forward and a backward in training mode, eager and static, with the same random numbers."""
    import paddle

    results = []
    for convert in (lambda f: f, paddle.jit.to_static):
        _load(model, inputs, known)
        _seed()
        with _no_fallback():
            result = _run(convert(lambda *args: model(*args)), inputs, of=model, train=True)
        result |= {f"state {k}": v.numpy() for k, v in model.state_dict().items()}
        results.append(result)
    for kind in ("output", "gradient", "state"):
        _compare(results[1], results[0], kind)


@contextmanager
def _no_fallback() -> Iterator[None]:
    """Raise when what runs inside is over, if a function has run eagerly that should have become a Program."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield
    fallen = [str(w.message) for w in said if w.category.__name__ == "FallbackWarning"]
    if fallen:
        raise RuntimeError(fallen[0].partition("without a Program: ")[2])


# ---- one run -----------------------------------------------------------------------------------------------------
def _made(case: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """Build the model and the inputs of a case."""
    _seed()
    names: dict[str, Any] = {"__name__": "case", "load": _file}
    for path in case.get("path", ()):
        sys.path.insert(0, path)
    lines = case["source"].splitlines(keepends=True)
    linecache.cache[f"<{case['name']}>"] = (len(case["source"]), None, lines, f"<{case['name']}>")
    exec(compile(case["source"], f"<{case['name']}>", "exec"), names)
    model = names["model"]
    return model, names["inputs"]


def _seed() -> None:
    import paddle

    paddle.seed(2024)
    np.random.seed(2024)
    random.seed(2024)


def _file(path: str) -> Any:
    """Import a Python file, with its folder where it looks for its neighbours."""
    folder, name = str(Path(path).parent), Path(path).stem
    sys.path.insert(0, folder)
    try:
        sys.modules.pop(name, None)
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


def _run(
    function: Any, inputs: Any, gradients: bool = True, of: Any = None, train: bool = False
) -> dict[str, np.ndarray]:
    """Return outputs, and gradients of a weighted mean of them."""
    import paddle

    model = of if of is not None else function
    model.train() if train else model.eval()
    floats = [t for t in _tensors(inputs) if "float" in str(t.dtype)]
    for t in floats:
        t.stop_gradient = not gradients
        t.clear_gradient()
    for p in model.parameters() if hasattr(model, "parameters") else ():
        p.clear_gradient()
    if not gradients:
        with paddle.no_grad():
            return {f"output {i}": t.numpy() for i, t in enumerate(_tensors(function(*inputs)))}
    outputs = list(_tensors(function(*inputs)))
    numbers = np.random.RandomState(7)
    losses = []
    for t in outputs:
        if "complex" in str(t.dtype):
            t = t.abs()
        if "float" in str(t.dtype) and not t.stop_gradient:
            losses.append((t * paddle.to_tensor(numbers.random_sample(t.shape).astype(t.numpy().dtype))).mean())
    result = {f"output {i}": t.numpy() for i, t in enumerate(outputs)}
    if losses:
        sum(losses[1:], losses[0]).backward()
    given = [(f"input {i}", t) for i, t in enumerate(floats)] + list(model.named_parameters())
    return result | {f"gradient {k}": t.grad.numpy() for k, t in given if t.grad is not None}


def _same_names(model: Any, known: dict[str, np.ndarray]) -> None:
    here = {k: tuple(v.shape) for k, v in model.state_dict().items()}
    there = {k.removeprefix("weight "): v.shape for k, v in known.items() if k.startswith("weight ")}
    if here != there:
        differ = sorted(k for k in here.keys() | there.keys() if here.get(k) != there.get(k))
        k = differ[0]
        raise ValueError(f"{len(differ)} weights differ: {k} is {here.get(k)} here and {there.get(k)} there")


def _load(model: Any, inputs: Any, known: dict[str, np.ndarray]) -> None:
    import paddle

    model.set_state_dict({k.removeprefix("weight "): v for k, v in known.items() if k.startswith("weight ")})
    if hasattr(model, "synchronise"):
        model.synchronise()
    for i, t in enumerate(_tensors(inputs)):
        with paddle.no_grad():
            t.set_value(known[f"input {i}"])


def _compare(here: dict[str, np.ndarray], there: dict[str, np.ndarray], kind: str) -> None:
    """Raise where arrays of a kind differ by more than the limit, relative to the largest number of each."""
    limit = FORWARD if kind == "output" else GRADIENT
    names = sorted(k for k in here.keys() | there.keys() if k.startswith(kind))
    largest = max((np.abs(there[k]).max(initial=0.0) for k in names if k in there), default=0.0)
    for k in names:
        if kind == "gradient" and (k in here) != (k in there):
            a = here.get(k, there.get(k))
            if a is not None and np.abs(a).max(initial=0) <= 1e-6 * largest:
                continue
        if k not in here or k not in there:
            raise ValueError(f"{k} is missing {'here' if k not in here else 'there'}")
        a, b = here[k], there[k]
        if a.shape != b.shape or a.dtype != b.dtype:
            raise ValueError(f"{k} is {a.dtype}{list(a.shape)} here and {b.dtype}{list(b.shape)} there")
        if not a.size or np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
            continue
        if a.dtype.kind not in "fc":
            raise ValueError(f"{k} differs in {np.mean(a != b):.1%} of its numbers")
        scale = max(float(np.nanmax(np.abs(b))), 1e-3 * float(largest), 1e-30)
        error = float(np.nanmax(np.abs(a - b))) / scale if np.array_equal(np.isnan(a), np.isnan(b)) else np.nan
        if not error <= limit:
            raise ValueError(f"{k} differs by {error:.1e} of its largest number ({scale:.1e})")


def _tensors(x: Any) -> Iterator[Any]:
    """Yield the tensors in lists, tuples, dicts and dataclass-like objects, in order."""
    if hasattr(x, "stop_gradient") and hasattr(x, "numpy"):
        yield x
    elif isinstance(x, (list, tuple)):
        for item in x:
            yield from _tensors(item)
    elif isinstance(x, dict):
        for key in x:
            yield from _tensors(x[key])


def _mapped(function: Callable[[Any], Any], x: Any) -> Any:
    if hasattr(x, "stop_gradient") and hasattr(x, "numpy"):
        return function(x)
    if isinstance(x, (list, tuple)):
        return type(x)(_mapped(function, item) for item in x)
    return {k: _mapped(function, v) for k, v in x.items()} if isinstance(x, dict) else x


def _reason(step: Callable[[], Any]) -> str:
    """Run a step; return what it raised and where, "" where it ran."""
    try:
        step()
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        at = next((f for f in reversed(frames) if "projects" not in Path(f.filename).parts[-2:]), frames[-1])
        text = re.sub(r"\s+", " ", str(error))[:600]
        return f"{type(error).__name__}: {text} [{'/'.join(Path(at.filename).parts[-2:])}:{at.lineno}]"
    return ""


def slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name)


if __name__ == "__main__":
    main()
