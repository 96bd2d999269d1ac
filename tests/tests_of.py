"""Which tests are of which module: `python3 dev.py tests-of MODULE`; without a module, a table of all.

It is told by imports, which are read from the source: that needs no run. Coverage would name every test that makes a
tensor as one of `ops/core/base.py`. The tests of a module are

1. those that have its name, `test_<module>.py`, and stand in the folder of its package or in one above;
2. those that import it, or a name from it, themselves;
3. where there are none, those of the modules that import it: the nearest ones;
4. where nothing imports it (a registry does, by name), the folder of tests of its package.

What is reached only through the public face (`import dy2st as paddle`) counts as 3, by the modules that the face takes
names from. Prints paths for pytest: `python3 dev.py test $(python3 dev.py tests-of dy2st/jit/api.py)`.
"""

import ast
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


@cache
def modules() -> dict[str, Path]:
    """Return the modules of dy2st by their dotted names."""
    return {_dotted(path): path for path in sorted((ROOT / "dy2st").rglob("*.py"))}


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def imports(path: Path) -> frozenset[str]:
    """Return the modules of dy2st that a file imports; of `from package import name`, the module that has the name."""
    named: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            named |= {name if name in modules() else node.module for name in whole}
    return frozenset(named & modules().keys() - {"dy2st"})


@cache
def importers() -> Mapping[str, frozenset[str]]:
    """Return which modules import a module."""
    found: dict[str, set[str]] = {name: set() for name in modules()}
    for name, path in modules().items():
        for imported in imports(path) - {name}:
            found[imported].add(name)
    return {name: frozenset(them) for name, them in found.items()}


@cache
def tests() -> Mapping[str, frozenset[Path]]:
    """Return which tests import a module."""
    found: dict[str, set[Path]] = {name: set() for name in modules()}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for imported in imports(path):
            found[imported].add(path)
    return {name: frozenset(them) for name, them in found.items()}


def named_after(module: str) -> list[Path]:
    """Return the tests that have the name of a module, in the nearest folder."""
    path = modules()[module]
    folder, name = path.parent.relative_to(ROOT / "dy2st"), path.stem
    if name == "__init__":
        folder, name = folder.parent, folder.name
    for above in (folder, *folder.parents):
        test = ROOT / "tests" / above / f"test_{name}.py"
        if test.exists():
            return [test]
    return []


def tests_of(module: str) -> list[Path]:
    """Return the tests of a module, that of its name first: files, or a folder."""
    first = named_after(module)  # 1.
    seen, near = {module}, {module}
    while near:
        found = {test for name in near for test in tests()[name]}  # 2.
        if first or found:
            return [*first, *sorted(found - {*first})]
        near = {name for one in near for name in importers()[one]} - seen  # 3.
        seen |= near
    folder = modules()[module].parent.relative_to(ROOT / "dy2st")
    return [
        next(at for above in (folder, *folder.parents) if any((at := ROOT / "tests" / above).glob("test_*.py")))
    ]  # 4.


def module_of(text: str) -> str:
    """Return the dotted name of a module that is named by it or by its path."""
    name = _dotted((ROOT / text).resolve()) if text.endswith(".py") else text
    if name not in modules():
        raise SystemExit(f"{text} is no module of dy2st: give a path (dy2st/jit/api.py) or a name (dy2st.jit.api)")
    return name


def main(arguments: Iterable[str]) -> int:
    """Print the tests of the modules, one a line; without modules, a table of all."""
    asked = list(arguments)
    if asked:
        found = dict.fromkeys(test for text in asked for test in tests_of(module_of(text)))
        print(*(str(test.relative_to(ROOT)) for test in found), sep="\n")
        return 0
    for name, path in modules().items():
        if path.name == "__init__.py" and not imports(path):
            continue  # a docstring
        of = [str(test.relative_to(ROOT)) for test in tests_of(name)]
        rest = f" and {len(of) - 3} more" if len(of) > 3 else ""
        print(f"{path.relative_to(ROOT)}: {', '.join(of[:3])}{rest}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
