"""AutoGraph's reference tests, with dy2st in TensorFlow's place: does each of their functions agree with itself?

Their files stay outside of this repository: `python -m tests.peers.autograph DIRECTORY` takes the `tests/` folder of a
checkout of diastatic-malt (or of TensorFlow's autograph) and prints what docs/peers/autograph.md has.

Each test method runs as it is written, once for each of its parameters. Wherever it compiles a function, the function
runs eagerly, then twice under `to_static(full_graph=True)` (the second call finds its Program), each time with
arguments of its own; values, types, printed text, what was written to the arguments, and exceptions must be the same.
What the tests expect AutoGraph to refuse is held against eager as well: a refusal there is no excuse here.
"""

import contextlib
import copy
import importlib.util
import io
import numbers
import signal
import sys
import threading
import types
import unittest
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import dy2st as paddle
from tests.peers import tensorflow_names
from tests.peers.tensorflow_names import OwnType

SECONDS = 5
"""How long a function may run; some of theirs never end eagerly."""


@dataclass
class Outcome:
    """What one run of a function gave."""

    value: Any = None
    error: BaseException | None = None
    printed: str = ""
    arguments: Any = None


@dataclass
class Verdict:
    """What one test method gave with one set of parameters.

    `kind` is "agrees", "differs", "endless", "own type" or "nothing run".
    """

    file: str
    method: str
    parameters: str
    kind: str = "agrees"
    reason: str = ""
    checks: int = 0


class Endless(BaseException):
    """A function ran for longer than it may."""


class TestCase(unittest.TestCase):
    """Stands for their base class: compares instead of compiling for TensorFlow."""

    all_inputs_tensors = False
    verdict: Verdict

    def assertFunctionMatchesEager(self, f: Callable[..., Any], *args: Any, xla: bool = False) -> None:
        self.compare(f, copies([as_tensor(x) for x in args] if self.all_inputs_tensors else args))

    def assertFunctionMatchesEagerStatefulInput(self, f: Callable[..., Any], args: Callable[[], Any]) -> None:
        self.compare(f, lambda: list(args()))

    def assertConvertedMatchesNative(self, f: Callable[..., Any], *args: Any) -> None:
        self.compare(f, copies(args))

    def function(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: self.compare(f, copies(args))

    @contextlib.contextmanager
    def _anything(self) -> Iterator[None]:
        yield

    def assertRaises(self, *what: Any) -> Any:
        return self._anything()

    def assertRaisesRegex(self, *what: Any) -> Any:
        return self._anything()

    def assertAllEqual(self, a: Any, b: Any) -> None:
        """Hold nothing: the function was compared with itself."""

    def skipTest(self, reason: Any) -> None:
        """Skip nothing: eager says what is right."""

    def compare(self, f: Callable[..., Any], args: Callable[[], list[Any]]) -> Any:
        self.verdict.checks += 1
        before = plain_globals(f)
        eager = run(f, f, args())
        if isinstance(eager.error, OwnType):
            raise eager.error
        if isinstance(eager.error, Endless):
            raise Endless
        static = paddle.jit.to_static(f, full_graph=True)
        for call in ("first", "second"):
            f.__globals__.update(before)
            difference = differing(eager, run(static, f, args()))
            if difference and self.verdict.kind == "agrees":
                self.verdict.kind = "differs"
                self.verdict.reason = f"{f.__name__}, {call} call: {difference}"
        return eager.value


def run(f: Callable[..., Any], written: Callable[..., Any], args: list[Any]) -> Outcome:
    """Call a function, for a limited time; keep what it gave, and what it left of the globals of `written`."""
    made, text = Outcome(), io.StringIO()
    try:
        with limited(), contextlib.redirect_stdout(text):
            made.value = f(*args)
            if isinstance(made.value, types.GeneratorType):
                made.value = ("generator", [list(made.value)])
    except (Exception, Endless) as error:
        made.error = error
    made.printed = text.getvalue()
    made.arguments = [list(x) if isinstance(x, Iterator) else x for x in args], plain_globals(written)
    return made


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Raise Endless after a while (on the main thread, where the system has alarms)."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*_: Any) -> None:
        raise Endless

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# ---- arguments and comparison ------------------------------------------------------------------------------------
def as_tensor(x: Any) -> Any:
    """Do as their base class does with arguments that are to be tensors."""
    if isinstance(x, dict):
        return {k: as_tensor(v) for k, v in x.items()}
    return tensorflow_names.constant(x) if isinstance(x, (numbers.Number, list, np.ndarray)) else x


def copies(args: Any) -> Callable[[], list[Any]]:
    """Return what makes the arguments of one call; what a test would share between its calls is not shared."""
    pulled = [list(x) if isinstance(x, Iterator) else None for x in args]
    return lambda: [copy.deepcopy(x) if p is None else iter(list(p)) for x, p in zip(args, pulled, strict=True)]


def plain_globals(f: Callable[..., Any]) -> dict[str, Any]:
    """Return the global variables of a function that hold plain values."""
    return {k: v for k, v in f.__globals__.items() if isinstance(v, (bool, int, float, str, type(None)))}


def differing(eager: Outcome, static: Outcome) -> str:
    """Say in what two runs differ; empty where they agree."""
    if type(eager.error) is not type(static.error):
        return f"eager {told(eager)}, static {told(static)}"
    if eager.error is not None and str(eager.error) != str(static.error):
        return f"eager says {str(eager.error)!r:.100}, static {str(static.error)!r:.300}"
    if eager.printed != static.printed:
        return f"eager prints {eager.printed!r}, static {static.printed!r}"
    if not same(eager.value, static.value):
        return f"eager returns {eager.value!r}, static {static.value!r}"
    if not same(eager.arguments, static.arguments):
        return f"eager leaves {eager.arguments!r} behind, static {static.arguments!r}"
    return ""


def told(outcome: Outcome) -> str:
    if outcome.error is None:
        return f"returns {outcome.value!r}"
    return f"raises {type(outcome.error).__name__}: {str(outcome.error)!r:.300}"


def same(a: Any, b: Any) -> bool:
    """Say whether two results are the same in type, dtype, structure and value."""
    if type(a) is not type(b) and not (hasattr(a, "_fields") and type(a).__name__ == type(b).__name__):
        return False
    if isinstance(a, paddle.Tensor):
        return a.dtype is b.dtype and same(a.numpy(), b.numpy())
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(v, b[k]) for k, v in a.items())
    if isinstance(a, (types.FunctionType, types.MethodType)):
        return a.__qualname__ == b.__qualname__
    if isinstance(a, Iterator):
        return same(list(a), list(b))
    if getattr(type(a), "__eq__", None) is object.__eq__:
        return same(vars(a), vars(b)) if hasattr(a, "__dict__") else a is b
    return bool(a == b)


# ---- their modules -----------------------------------------------------------------------------------------------
def parameters(*cases: Any) -> Callable[[Any], Any]:
    """Stand for `absl.testing.parameterized.parameters`."""

    def mark(method: Any) -> Any:
        method.cases = [case if isinstance(case, (tuple, list)) else (case,) for case in cases]
        return method

    return mark


@dataclass
class Stage:
    """Modules that stand for TensorFlow, absl and malt while one of their files is loaded and run."""

    case: TestCase | None = None
    before: dict[str, Any] = field(default_factory=dict[str, Any])

    def modules(self) -> dict[str, Any]:
        tf = module("tensorflow", **tensorflow_names.NAMES, test=types.SimpleNamespace(TestCase=TestCase))
        tf.function = lambda f: self.case.function(f)  # type: ignore[union-attr]
        base = module("reference_test_base", TestCase=TestCase)
        parameterized = types.SimpleNamespace(TestCase=object, parameters=parameters)
        directives = types.SimpleNamespace(set_element_type=tensorflow_names.note)
        lang = module("malt.lang", directives=directives, special_functions=tensorflow_names.SPECIAL)
        compat = {name: tf for name in ("tensorflow", "tensorflow.compat", "tensorflow.compat.v1")}
        tf.compat = types.SimpleNamespace(v1=tf)
        return {**compat, "reference_test_base": base, "absl": module("absl"), "malt": module("malt"),
                "absl.testing": module("absl.testing", parameterized=parameterized), "malt.lang": lang}  # fmt: skip

    def __enter__(self) -> "Stage":
        made = self.modules()
        self.before = {name: sys.modules.get(name) for name in made}
        sys.modules.update(made)
        return self

    def __exit__(self, *_: Any) -> None:
        for name, previous in self.before.items():
            sys.modules.pop(name)
            if previous is not None:
                sys.modules[name] = previous


def module(name: str, **names: Any) -> Any:
    made = types.ModuleType(name)
    made.__dict__.update(names)
    return made


def verdicts(path: Path, only: str = "") -> Iterator[Verdict]:
    """Run the tests of one of their files (those with `only` in the name); give what became of each."""
    with Stage() as stage:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = loaded
        spec.loader.exec_module(loaded)
        for kind in vars(loaded).values():
            if not (isinstance(kind, type) and issubclass(kind, TestCase)):
                continue
            for name, method in vars(kind).items():
                if not name.startswith("test") or only not in name:
                    continue
                for case in getattr(method, "cases", [()]):
                    stage.case = kind(name)
                    yield verdict_of(stage.case, Verdict(path.stem, name, shown(case)), case)


def verdict_of(case: TestCase, verdict: Verdict, arguments: Any) -> Verdict:
    case.verdict = verdict
    try:
        case.setUp()
        getattr(case, verdict.method)(*arguments)
    except OwnType as error:
        verdict.kind, verdict.reason = "own type", str(error)
    except Endless:
        verdict.kind, verdict.reason = "endless", "the function never ends eagerly"
    except Exception as error:  # of the eager run or the adapter: never a pass
        verdict.kind, verdict.reason = "differs", f"the test itself raises {type(error).__name__}: {error}"
    if verdict.kind == "agrees" and not verdict.checks:
        verdict.kind, verdict.reason = "nothing run", "the test has no statement"
    return verdict


def shown(case: Any) -> str:
    return ", ".join(getattr(x, "__name__", None) or repr(x) for x in case)


def files(directory: Path) -> list[Path]:
    """Return their files of reference tests."""
    return sorted(directory.glob("*_test.py"))


def main() -> int:
    """Print a line for each test that does not agree, and the counts; the status is 1 where one differs."""
    directory, only = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
    found: list[Verdict] = []
    for path in files(directory):
        for verdict in verdicts(path, only):
            found.append(verdict)
            if verdict.kind != "agrees":
                print(f"{verdict.kind:10} {verdict.file}.{verdict.method}({verdict.parameters}): {verdict.reason}")
    for kind in dict.fromkeys(v.kind for v in found):
        of_kind = [v for v in found if v.kind == kind]
        methods = {(v.file, v.method) for v in of_kind}
        print(f"{kind}: {len(of_kind)} tests of {len(methods)} methods")
    methods = {(v.file, v.method) for v in found}
    whole = methods - {(v.file, v.method) for v in found if v.kind != "agrees"}
    print(f"{len(found)} tests of {len(methods)} methods, of which {len(whole)} agree with all parameters")
    return int(any(v.kind == "differs" for v in found))


if __name__ == "__main__":
    sys.exit(main())
