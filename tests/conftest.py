"""What every test may use: fixed random numbers, golden files, and skips that say what is missing."""

import atexit
import difflib
import gc
import importlib
import os
import random
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

import dy2st as paddle
from dy2st.ir.context import current
from tests import objects
from tests.beside import Beside
from tests.round_trips import RoundTrips
from tests.shares import divide
from tests.sweeping import Sweeping

gc.disable()  # until all tests are collected: there is nothing to free before
SWEEPING = Sweeping()
COMPARED: Counter[str] = Counter()
OBJECTS = pytest.StashKey[objects.Objects]()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as for jobs in the background; tests end loops by it
    signal.signal(signal.SIGINT, signal.default_int_handler)

if "DY2ST_CACHE_DIR" not in os.environ:  # processes that this one starts share the folder and do not come here
    os.environ["DY2ST_CACHE_DIR"] = tempfile.mkdtemp(prefix="dy2st-tests-")
    atexit.register(shutil.rmtree, os.environ["DY2ST_CACHE_DIR"], ignore_errors=True)

os.environ.setdefault("DY2ST_BACKEND", "interpreter")  # tests/runtime/backends/cpu/ and tests/examples/ run native code

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden/ anew from what tests produce")
    parser.addoption("--fast", action="store_true", help="leave out slow tests, and most cases of tests with many")
    parser.addoption("--round-trips", type=int, metavar="N", help="print and parse every N-th Program: 8, or 32")
    parser.addoption("--gpu", action="store_true", help="make tensors on a CUDA device")
    parser.addoption("--on-cuda", action="store_true", help="make tensors on an emulated CUDA device")
    parser.addoption("--new-objects", action="store_true", help="have LLVM make code that it has made in earlier runs")
    parser.addoption("--native-beside", type=int, metavar="N", help="run every N-th Program by both tiers: 100, or 500")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--gpu") and (reason := missing_for_gpu()):
        raise pytest.UsageError(f"--gpu: {reason}")
    if config.getoption("--fast"):
        settings.register_profile("fast", max_examples=25)
        settings.load_profile("fast")
    if config.pluginmanager.hasplugin("cacheprovider") and not config.getoption("--new-objects"):
        config.stash[OBJECTS] = objects.keep(config.rootpath / ".pytest_cache" / "d" / "dy2st-objects")


def pytest_runtest_setup(item: pytest.Item) -> None:
    on_device = item.config.getoption("--on-cuda") or item.config.getoption("--gpu")
    if on_device and (marker := item.get_closest_marker("on_host")):
        pytest.skip(f"on the host only: {marker.args[0]}")
    if item.get_closest_marker("gpu") and (reason := missing_for_gpu()):
        pytest.skip(reason)


@cache
def missing_for_gpu() -> str:
    """Say what a test on CUDA lacks here; empty when nothing is."""
    try:
        cupy = importlib.import_module("cupy")
    except ImportError:
        return "CuPy is not installed: pip install dy2st[cuda13] (or dy2st[cuda12])"
    try:
        return "" if cupy.cuda.runtime.getDeviceCount() else "no CUDA device"
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no CUDA device: {error}"


@pytest.fixture(autouse=True)
def fixed_seed() -> Iterator[None]:
    """Give each test the same random numbers and code of eager ops, whatever ran before it, and eager mode."""
    current().process.ops.clear()
    random.seed(0)
    np.random.seed(0)
    paddle.seed(0)
    yield
    if not paddle.in_dynamic_mode():
        paddle.disable_static()


@pytest.fixture(autouse=True)
def on_cuda(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Under `--on-cuda` and `--gpu`, let the test make its tensors on the device, and Programs run there as kernels."""
    emulated = request.config.getoption("--on-cuda")
    if not (emulated or request.config.getoption("--gpu")):
        yield
        return
    if emulated:
        monkeypatch.setenv("DY2ST_CUDA", "emulated")
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    paddle.set_device("gpu")
    yield
    paddle.set_device("cpu")


@pytest.fixture(autouse=True)
def round_trips(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Send a share of the Programs that the test makes through their text and JSON forms; fail where one changed."""
    every = request.config.getoption("--round-trips") or (32 if request.config.getoption("--fast") else 8)
    trips = RoundTrips(every, request.node.nodeid)
    trips.watch(monkeypatch)
    yield
    if trips.faults:
        pytest.fail(trips.faults[0], pytrace=False)


@pytest.fixture(autouse=True)
def beside(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run a share of the Programs that the test runs a second time, by the other tier; fail where results differ."""
    every = request.config.getoption("--native-beside") or (500 if request.config.getoption("--fast") else 100)
    watching = Beside(every, request.node.nodeid, COMPARED)
    if not request.node.get_closest_marker("one_tier"):
        watching.watch(monkeypatch)
    yield
    if watching.faults:
        pytest.fail(watching.faults[0], pytrace=False)


@pytest.fixture
def main() -> Iterator[paddle.static.Program]:
    """Enter static mode with empty Programs and a scope of its own; give the main Program."""
    paddle.enable_static()
    program = paddle.static.Program()
    try:
        with (
            paddle.static.scope_guard(paddle.static.Scope()),
            paddle.static.program_guard(program, paddle.static.Program()),
        ):
            yield program
    finally:
        paddle.disable_static()


@pytest.fixture
def rng() -> np.random.Generator:
    """NumPy's generator, seeded."""
    return np.random.default_rng(0)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with tests/golden/NAME.txt, or write it there under `--update-golden`.

    `golden("ir/while_loop", text)`; a name may have folders in it.
    """
    update = bool(request.config.getoption("--update-golden"))

    def compare(name: str, text: str) -> None:
        path = GOLDEN / f"{name}.txt"
        text = text.rstrip("\n") + "\n"
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"tests/golden/{name}.txt is missing: run with --update-golden and read what it writes")
        want = path.read_text(encoding="utf-8")
        if text != want:
            lines = difflib.unified_diff(want.splitlines(), text.splitlines(), f"golden/{name}.txt", "now", lineterm="")
            pytest.fail("\n".join([*lines, "(right as it is now? run with --update-golden)"]), pytrace=False)

    return compare


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--fast"):
        items[:], left_out = divide(items)
        config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish() -> None:
    SWEEPING.begin()


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["compared"] = COMPARED["runs"]
    elif OBJECTS in session.config.stash:
        session.config.stash[OBJECTS].shrink()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    COMPARED["runs"] += getattr(node, "workeroutput", {}).get("compared", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if COMPARED["runs"]:
        terminalreporter.write_line(
            f"{COMPARED['runs']} runs of Programs compared between native code and the interpreter"
        )


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish() -> None:
    SWEEPING.test_ended()
