"""Modules that a project imports and that are not here: `paddle` is dy2st, packages nobody installed are stubs."""

import ast
import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any


class PaddleIsDy2st:
    """Finds `paddle` and what is below it as the modules of dy2st, which stay themselves."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        first, dot, rest = fullname.partition(".")
        if first != "paddle":
            return None
        try:
            module = importlib.import_module("dy2st" + dot + rest)
        except ModuleNotFoundError as error:
            if error.name is not None and ("dy2st" + dot + rest).startswith(error.name):
                return None
            raise
        return ModuleSpec(fullname, _Given(module), is_package=hasattr(module, "__path__"))


class _Given:
    def __init__(self, module: ModuleType):
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # importlib has written the spec of the other name there


class Stubs:
    """Finds modules of packages that a project imports and nobody has installed: every name in them is a class."""

    def __init__(self, packages: set[str]):
        self.packages = packages

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname.partition(".")[0] in self.packages else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = ModuleType(spec.name)
        module.__getattr__ = _class_named  # type: ignore[method-assign]
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__version__ = "1.0.0"


class _Meta(type):
    def __getattr__(cls, name: str) -> Any:
        return _class_named(name)

    def __setitem__(cls, key: Any, value: Any) -> None:
        pass

    def __getitem__(cls, key: Any) -> Any:
        return _Stub

    def __iter__(cls) -> Any:
        return iter(())

    def __or__(cls, other: Any) -> Any:
        return cls

    __ror__ = __or__


class _Stub(metaclass=_Meta):
    def __init__(self, *args: Any, **kwargs: Any):
        pass

    def __getattr__(self, name: str) -> Any:
        return _class_named(name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if len(args) == 1 and callable(args[0]) else _Stub()  # it may be a decorator


def _class_named(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Meta(name, (_Stub,), {})


def absent_packages(folder: Path) -> set[str]:
    """Return the packages that files below `folder` need at import and that are not installed.

    Those imported inside of `try` are left out: the project says itself what it does without them.
    """
    wanted: set[str] = set()
    for path in sorted(folder.rglob("*.py")):
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        tried = {id(n) for t in ast.walk(tree) if isinstance(t, ast.Try) for n in ast.walk(t)}
        for node in ast.walk(tree):
            if id(node) in tried:
                continue
            if isinstance(node, ast.Import):
                wanted |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                wanted.add(node.module.partition(".")[0])
    wanted -= {"paddle", "torch", "tensorflow", "jax", "cupy", *sys.stdlib_module_names}
    return {name for name in wanted if importlib.util.find_spec(name) is None}
