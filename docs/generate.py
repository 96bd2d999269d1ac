"""Write the documentation as Markdown: guides, an API page for each namespace, Paddle's names with what differs.

`python3 dev.py docs` runs it, into build/docs, and makes a site of that where mkdocs-material is installed. Docstrings
are the source of the API pages; their examples are run by tests/test_doctests.py.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import dtypes_of_ops
from docstrings import to_markdown

from dy2st.runtime.eager.tensor import Tensor
from tests.surface import Name, is_here, lacking_arguments, surface
from tests.surface_gaps import MISSING, OTHER_ARGUMENTS
from tests.values.unlike_paddle import REASONS

ROOT = Path(__file__).resolve().parents[1]
NAMESPACES = (
    *("paddle", "nn", "nn.functional", "nn.initializer", "nn.utils", "optimizer", "optimizer.lr", "regularizer"),
    *("linalg", "fft", "distribution", "metric", "io", "amp", "autograd", "incubate.autograd", "jit", "static"),
    *("static.nn", "vision.models", "utils", "device", "distributed", "array_api", "fluid", "viz"),
    *("serving", "fleets", "scaling"),
)


INDEX = """# dy2st

dy2st turns plain Python on tensors into one static, differentiable, saveable Program, with PaddlePaddle's names:
`import dy2st as paddle`.

- [Architecture](architecture.md): the layers, and the way of a call through them
- What Python can do in a Program: [the page](python-support.md); when something is slow or differs:
  [debugging](debugging.md); the [glossary](glossary.md)
- [Serving](serving.md) saved models over HTTP; [a Program in a page](browser.md);
  [scale](scaling.md) on paper; [checking a project](check-project.md)
- [Examples](examples.md): programs to read and to run, from LeNet to a detector; [recipes](recipes.md) with the
  figures that they reach
- [From torch](from-torch.md): its weights in Layers, its models by ONNX
- [Weights as integers](quantization.md): models of 8 and 4 bits, trained so or rounded afterwards
- [Paddle's names](paddle-names.md): which of them are here, and what differs
- [Which op is defined on what](dtypes-of-ops.md): bool, integers, floats, complex numbers
- [Performance](performance.md): whole workloads beside other packages; [on a busy machine](busy.md)
- Native code: [what has it](native-coverage.md), [math](native-math.md), [products](native-gemm.md),
  [convolutions](native-conv.md), [derivatives](derivative-programs.md)
- API: {pages}
- For who works on dy2st: [an op](writing-an-op.md), [a transformer](writing-a-transformer.md),
  [a pass](writing-a-pass.md), [the core from scratch](from-scratch.md), [tests](testing.md),
  [benchmarks](benchmarks.md)
"""


def main() -> None:
    """Write all pages to the folder that the command line names."""
    target = Path(sys.argv[1])
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "docs", target, ignore=shutil.ignore_patterns("*.py", "*.yml", "__pycache__"))
    (target / "api").mkdir()
    pages = {f"api/{name}.md": namespace_page(name) for name in NAMESPACES}
    pages["api/Tensor.md"] = tensor_page()
    pages["paddle-names.md"] = names_page()
    pages["examples.md"] = examples_page()
    pages["dtypes-of-ops.md"] = dtypes_of_ops.page()
    pages["index.md"] = INDEX.format(pages=", ".join(f"[{name}](api/{name}.md)" for name in ("Tensor", *NAMESPACES)))
    for name, text in pages.items():
        (target / name).write_text(text, encoding="utf-8")
    print(f"{len(pages)} pages written to {target}")


# ---- API ---------------------------------------------------------------------------------------------------------
def namespace_page(name: str) -> str:
    """Return the page of a namespace: what it is for, then each public function and class."""
    module = importlib.import_module("dy2st" if name == "paddle" else f"dy2st.{name}")
    title = name if name == "paddle" else f"paddle.{name}"
    parts = [f"# {title}", to_markdown(module.__doc__ or "")]
    for public, found in members(module):
        parts.append(entry(f"{title}.{public}", found))
    return "\n\n".join(parts) + "\n"


def members(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Give the public functions and classes of a module, by name; another name of one that was given is left out."""
    seen: set[int] = set()
    for name in sorted(dir(module), key=str.lower):
        found = getattr(module, name, None) if not name.startswith("_") else None
        ours = getattr(found, "__module__", None) or ""
        if callable(found) and ours.startswith("dy2st") and id(found) not in seen:
            seen.add(id(found))
            yield name, found


def entry(title: str, found: Any, level: int = 2) -> str:
    """Return heading, signature and docstring of a function or class, and the methods that a class adds."""
    parts = [f"{'#' * level} {title}", f"```text\n{title.rpartition('.')[2]}{signature(found)}\n```"]
    parts.append(to_markdown(inspect.getdoc(found) or ""))
    if inspect.isclass(found) and level == 2:
        for name, method in vars(found).items():
            if inspect.isfunction(method) and not name.startswith("_") and inspect.getdoc(getattr(found, name)):
                parts.append(entry(f"{title}.{name}", getattr(found, name), 3))
    return "\n\n".join(part for part in parts if part)


def signature(found: Any) -> str:
    """Return the arguments of a function or class as they are written; "(...)" where Python cannot tell them."""
    try:
        return str(inspect.signature(found)).replace("'", "")
    except (TypeError, ValueError):
        return "(...)"


def tensor_page() -> str:
    """Return the page of Tensor: what is its own, and the methods that are functions of `paddle` with it in front."""
    import dy2st

    own, shared = [], []
    for name in sorted((n for n in dir(Tensor) if not n.startswith("_")), key=str.lower):
        found = inspect.getattr_static(Tensor, name)
        if callable(found) and getattr(dy2st, name, None) is found:
            shared.append(f"[`{name}`](paddle.md#paddle{name.lower()})")
        elif callable(found):
            own.append(entry(f"Tensor.{name}", found))
        elif isinstance(found, property):
            own.append(f"## Tensor.{name}\n\n{to_markdown(inspect.getdoc(found) or '')}".rstrip())
    listed = f"## Functions as methods\n\n`x.{{name}}(...)` is `paddle.{{name}}(x, ...)`: {', '.join(shared)}."
    return "\n\n".join(["# Tensor", to_markdown(inspect.getdoc(Tensor) or ""), *own, listed]) + "\n"


# ---- Paddle's names ----------------------------------------------------------------------------------------------
def names_page() -> str:
    """Return the table of Paddle's public names: which are here, and what differs."""
    names = sorted(surface(), key=lambda name: name.path.lower())
    rows = [names_row(name) for name in names]
    here = sum(is_here(name.path) for name in names)
    head = (
        "# Paddle's names\n\n"
        f"Of the {len(names)} public names of Paddle 3.3, {here} are here. Arguments are those of Paddle unless the "
        "last column says otherwise; what it says of values was found by comparing with Paddle itself "
        "(`tests/peers/paddle_values.py`).\n\n| Paddle | here | what differs |\n|---|---|---|\n"
    )
    return head + "\n".join(rows) + "\n"


def names_row(name: Name) -> str:
    """Return the row of one name."""
    if not is_here(name.path):
        return f"| `{name.path}` | no | {MISSING.get(name.path, '')} |"
    lacking = ", ".join(lacking_arguments(name))
    value = REASONS.get(name.path.split(".")[-1].removesuffix("_"), "")
    differs = [OTHER_ARGUMENTS.get(name.path, f"not taken: {lacking}") if lacking else "", value]
    return f"| `{name.path}` | yes | {'; '.join(filter(None, differs))} |"


# ---- examples ----------------------------------------------------------------------------------------------------
def examples_page() -> str:
    """Return the list of the programs in examples/, each with what it says of itself."""
    parts = ["# Examples"]
    for path in sorted((ROOT / "examples").glob("*.py")):
        doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if "Run it with" in doc:
            parts.append(f"## {path.name}\n\n{to_markdown(doc)}")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
