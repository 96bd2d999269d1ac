"""Dependencies point down: which part of dy2st may import which, read from the source and not from a run.

Every import counts for the layers, also those inside functions and under TYPE_CHECKING.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# From the ground up. Parts of one layer may import each other (without circles); nothing imports a layer above its own.
LAYERS: tuple[frozenset[str], ...] = tuple(
    frozenset(layer.split())
    for layer in (
        "errors dtypes shapes naming formatting paths missing records kinds late forks config version",
        "ir",
        "ops",
        "passes",
        "autodiff batching",
        "runtime",
        "files",
        "functions",
        "nn regularizer linalg tensor fft signal",
        "optimizer",
        "static geometric sparse audio text profiler incubate amp array_api io metric autograd device utils",
        "jit distributed distribution vision hapi callbacks",
        "fluid export onnx interop paddle_files viz project framework inference operators",
        "fleets quantization scaling serving legacy_operators",
        "<face> cli __main__",  # <face> is dy2st/__init__.py
    )
)
# The folders of native code, in the same way; the modules beside them stand on top of all.
NATIVE = "dy2st.runtime.backends.cpu"
NATIVE_LAYERS: tuple[frozenset[str], ...] = tuple(
    frozenset(layer.split())
    for layer in (
        "llvm_ir",
        "allocator",
        "compile_link",
        "thread_pool libm",
        "gemm vector_ops",
        "fusion",
        "loop_nests",
        "conv attention",
        "python_abi loop_parallel",
        "trampolines",
        "emitter",
        "ops",
        "kernel_calls",
    )
)
# Packages whose folders import each other without a circle; in `ir`, what reads files stands on top of the checker.
WITHOUT_CIRCLES = ("runtime", "jit", "ops", "passes", "functions", "transformers", "autodiff", "batching")
MOST_FILES = 20
"""Of a folder of those packages."""
# The second tower: what each may import. It meets the first in jit alone.
TOWER = {
    "pysrc": frozenset({"errors", "naming", "records", "pysrc"}),
    "transformers": frozenset({"errors", "naming", "records", "late", "forks", "pysrc", "transformers"}),
}
MEETS_TOWER = frozenset({"jit"})

# Packages that load on first use: never imported where a module's own top level runs.
ON_FIRST_USE = frozenset(
    (
        "gast astor llvmlite ml_dtypes safetensors scipy cupy cupyx cuda onnx onnxruntime rich tqdm mpi4py ray torch "
        "jax paddle starlette uvicorn httpx"
    ).split()
)
# Imports inside functions other than those: importer -> {what it imports: why it may}.
_MAKES_CODE = "it only makes code, and most processes find theirs on disk"
_IN_FRONT_OF_NATIVE_CODE = (
    "loops.peel_optional_cotangents loops.sink_broadcasts loops.split_matmul lowering.batched_wgrad "
    "lowering.bool_indices_to_int lowering.broadcast_constants lowering.complex_to_pairs lowering.decompose "
    "lowering.dims_of_operands lowering.in_float32 lowering.matmul_accumulate lowering.pad_add_to_concat "
    "lowering.push_slice_up simplify.dead_stores simplify.fuse_attention simplify.select_to_cond"
)
INSIDE_FUNCTIONS: dict[str, dict[str, str]] = {
    f"{NATIVE}.native_executable": {f"{NATIVE}.compile": _MAKES_CODE},
    f"{NATIVE}.runtime_library_symbols": {f"{NATIVE}.runtime_library": _MAKES_CODE},
    f"{NATIVE}.compile_link.code_loader": {
        f"{NATIVE}.compile_link.elf_linker": _MAKES_CODE,
        f"{NATIVE}.compile_link.llvm_loader": "it loads LLVM",
    },
    f"{NATIVE}.thread_pool.pool": {f"{NATIVE}.thread_pool.module": _MAKES_CODE},
    f"{NATIVE}.trampolines.call": {f"{NATIVE}.trampolines.call_ir": _MAKES_CODE},
    f"{NATIVE}.trampolines.static_function": {f"{NATIVE}.trampolines.static_function_ir": _MAKES_CODE},
    f"{NATIVE}.trampolines.write_back": {f"{NATIVE}.trampolines.call_ir": _MAKES_CODE},
    "dy2st.cli": {f"{NATIVE}.dump_stages": _MAKES_CODE, "dy2st.jit.c_library.export": _MAKES_CODE},
    "dy2st.ops.collective.world": {"tempfile": "it loads modules that no process of one rank needs"},
    "dy2st.runtime.executor.select": {"dy2st.runtime.backends.cuda.program": _MAKES_CODE},
    "dy2st.missing": {"difflib": "2 ms of every `import dy2st` otherwise, for the text of an error"},
    "dy2st.passes.pipelines": {f"dy2st.passes.{name}": _MAKES_CODE for name in _IN_FRONT_OF_NATIVE_CODE.split()},
    "dy2st.ir.program": {"dy2st.ir.printer": "str(program) is the printer's work, and the printer reads programs"},
}


@dataclass(frozen=True)
class Import:
    """One imported module, seen from the module that imports it."""

    importer: str
    target: str
    line: int
    when: str  # "run" at the module's top level, "typing" under TYPE_CHECKING, "call" inside a function
    function: str = ""

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.target}"


@cache
def modules() -> dict[str, Path]:
    """Map the name of every module of dy2st to its file."""
    found: dict[str, Path] = {}
    for path in sorted((ROOT / "dy2st").rglob("*.py")):
        found[".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")] = path
    return found


@cache
def imports() -> tuple[Import, ...]:
    """Read the imports of every module."""
    known = frozenset(modules())
    return tuple(found for name, path in modules().items() for found in read_imports(name, path, known))


def read_imports(name: str, path: Path, known: frozenset[str]) -> Iterator[Import]:
    """Read the imports of one file: `from a import b` names a.b where that is a module, else a."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]

    def targets(node: ast.Import | ast.ImportFrom) -> list[str]:
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names]
        base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        stem = ".".join([*base, *([node.module] if node.module else [])])
        named = [f"{stem}.{alias.name}" for alias in node.names]
        return list(dict.fromkeys(full if full in known else stem for full in named))

    def walk(node: ast.AST, when: str, function: str) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                continue  # nothing is imported inside of an expression
            if isinstance(child, ast.Import | ast.ImportFrom):
                yield from (Import(name, target, child.lineno, when, function) for target in targets(child))
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from walk(child, "call", child.name)
            elif isinstance(child, ast.If) and names_type_checking(child.test):
                yield from walk(child, "typing", function)
            else:
                yield from walk(child, when, function)

    return walk(ast.parse(path.read_text(encoding="utf-8")), "run", "")


def names_type_checking(test: ast.expr) -> bool:
    return "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", ""))


def part(module: str) -> str:
    """Name the part of the house that a module of dy2st belongs to."""
    return module.split(".")[1] if "." in module else "<face>"


def of_dy2st(module: str) -> bool:
    return module.split(".")[0] == "dy2st"


def height(name: str) -> int:
    """Return the number of a part's layer; -1 for one without a place, which `test_every_module_has_a_layer` names."""
    return next((level for level, layer in enumerate(LAYERS) if name in layer), -1)


def allowed(importer: str, target: str) -> bool:
    """Say whether one part may import another."""
    if importer in TOWER:
        return target in TOWER[importer]
    if target in TOWER:
        return importer in MEETS_TOWER
    return height(target) <= height(importer)


def test_every_module_has_a_layer() -> None:
    placed = frozenset().union(*LAYERS, TOWER)
    assert not [name for name in modules() if part(name) not in placed], "give it a place in LAYERS and in docs"


def test_dependencies_point_down() -> None:
    inner = [found for found in imports() if of_dy2st(found.target)]
    assert not [str(found) for found in inner if not allowed(part(found.importer), part(found.target))]


def native_height(module: str) -> int:
    """Return the number of the layer that a module of native code stands in: the top for those beside the folders."""
    folder = module.removeprefix(NATIVE).lstrip(".").partition(".")[0]
    return next((level for level, layer in enumerate(NATIVE_LAYERS) if folder in layer), len(NATIVE_LAYERS))


def test_folders_of_native_code_import_what_is_below() -> None:
    inner = [found for found in imports() if f"{NATIVE}." in found.importer and f"{NATIVE}." in found.target]
    assert len(inner) > 500
    assert not [str(found) for found in inner if native_height(found.target) > native_height(found.importer)]


def test_every_folder_of_native_code_has_a_layer() -> None:
    folders = {path.parent.name for path in (ROOT / "dy2st/runtime/backends/cpu").glob("*/__init__.py")}
    assert folders == frozenset().union(*NATIVE_LAYERS)


def folder(module: str) -> str:
    """Return the folder that a module stands in; the `__init__` of a folder, which collects, stands by itself."""
    return module if modules()[module].name == "__init__.py" else module.rpartition(".")[0] + "/"


def test_folders_make_no_circles() -> None:
    graph: dict[str, set[str]] = {}
    for found in imports():
        if part(found.importer) in WITHOUT_CIRCLES and found.target in modules():
            if folder(found.importer) != folder(found.target):
                graph.setdefault(folder(found.importer), set()).add(folder(found.target))
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        pytest.fail("folders in a circle: " + " <- ".join(circle.args[1]), pytrace=False)


@pytest.mark.parametrize("package", WITHOUT_CIRCLES)
def test_every_folder_says_what_lives_in_it_and_has_few_files(package: str) -> None:
    folders = {path.parent for path in (ROOT / "dy2st" / package).rglob("*.py")}
    said = {one: ast.get_docstring(ast.parse((one / "__init__.py").read_text(encoding="utf-8"))) for one in folders}
    assert not [str(one) for one, text in said.items() if not text]
    assert not [str(one) for one in folders if len(list(one.glob("[!_]*.py"))) > MOST_FILES]


def test_no_import_circles() -> None:
    """What a package's __init__ collects may name the package's own modules only downwards too."""
    graph: dict[str, set[str]] = {name: set() for name in modules()}
    for found in imports():
        if found.when == "run" and found.target in graph and found.target != found.importer:
            graph[found.importer].add(found.target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        pytest.fail("import circle: " + " <- ".join(circle.args[1]), pytrace=False)


def test_heavy_packages_load_on_first_use() -> None:
    assert not [
        str(found) for found in imports() if found.when == "run" and found.target.split(".")[0] in ON_FIRST_USE
    ], "import it inside of the typed wrapper that needs it"


def test_imports_stand_at_the_top() -> None:
    """Inside functions stand only packages that load on first use, and the lazy names of a module's __getattr__."""
    inside = [found for found in imports() if found.when == "call" and found.function != "__getattr__"]
    assert not [
        str(found)
        for found in inside
        if found.target.split(".")[0] not in ON_FIRST_USE
        and found.target not in INSIDE_FUNCTIONS.get(found.importer, {})
    ]


def test_import_dy2st_loads_no_heavy_package() -> None:
    code = "import sys, dy2st; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert not ON_FIRST_USE.intersection(done.stdout.split())


@pytest.mark.parametrize(
    ("importer", "target", "may"),
    [
        ("ops", "ir", True),
        ("ops", "ops", True),
        ("ops", "autodiff", False),
        ("ir", "<face>", False),
        ("jit", "transformers", True),
        ("runtime", "transformers", False),
        ("transformers", "runtime", False),
        ("transformers", "naming", True),
        ("pysrc", "transformers", False),
        ("cli", "<face>", True),
    ],
)
def test_the_rule_itself(importer: str, target: str, may: bool) -> None:
    assert allowed(importer, target) == may


def test_imports_are_found_wherever_they_stand(tmp_path: Path) -> None:
    source = tmp_path / "low.py"
    source.write_text(
        "from typing import TYPE_CHECKING\n"
        "from ..ir import value, Op\n"
        "if TYPE_CHECKING:\n    import gast\n"
        "def f():\n    from dy2st import nn\n"
    )
    found = read_imports("dy2st.ops.low", source, frozenset({"dy2st.ir", "dy2st.ir.value", "dy2st.nn"}))
    assert [(one.target, one.when) for one in found] == [
        ("typing", "run"),
        ("dy2st.ir.value", "run"),
        ("dy2st.ir", "run"),
        ("gast", "typing"),
        ("dy2st.nn", "call"),
    ]
