"""What type checkers and editors are told of Tensor's methods is what the methods are."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dy2st
from dy2st.functions.methods import METHODS

STUB = Path(dy2st.__file__).parent / "runtime" / "eager" / "tensor_methods.pyi"
HEAD = '''"""The operators and methods that `functions/methods.py` attaches to Tensor, as type checkers see them.

Made by `python3 dev.py test tests/runtime/test_tensor_methods.py --update-golden`. It is committed: type checkers
read it in a checkout that nobody has built, and to make it takes an import of dy2st, which a build has not.
"""

import builtins
from collections.abc import Callable
from typing import Any

from dy2st.runtime.eager.tensor import Tensor

class TensorMethods:
'''
RESULTS = {"__divmod__": "tuple[Tensor, Tensor]", "__rdivmod__": "tuple[Tensor, Tensor]", "__setitem__": "None"}
KNOWN = ("Tensor", "Any", "Callable", "None", "int", "float", "bool", "str", "list", "tuple")


def annotation(said: Any) -> str:
    """Name a type as it reads inside of a class that has methods named int, float and bool."""
    if said is inspect.Signature.empty:
        return "Any"
    text = re.sub(r"\b(int|float|bool)\b", r"builtins.\1", str(said))
    unknown = [word for word in re.findall(r"[A-Za-z_]\w*", str(said)) if word not in KNOWN]
    return "Any" if unknown else text


def parameter(one: inspect.Parameter) -> str:
    star = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(one.kind, "")
    default = "" if one.default is inspect.Parameter.empty else f" = {one.default!r}"
    return f"{star}{one.name}: {annotation(one.annotation)}{default}"


def declared(name: str, method: Any) -> str:
    if isinstance(method, property):
        result = annotation(inspect.signature(method.fget).return_annotation)
        text = f"    @property\n    def {name}(self) -> {result}: ...\n"
        if method.fset is not None:
            text += f"    @{name}.setter\n    def {name}(self, value: Any) -> None: ...\n"
        return text
    signature = inspect.signature(method)
    if name in ("__eq__", "__ne__"):
        why = "# pyright: ignore[reportIncompatibleMethodOverride]  # elements, not one bool"
        return f"    def {name}(self, other: object) -> Tensor: ...  {why}\n"
    parts, keyword_only = ["self"], False
    for one in list(signature.parameters.values())[1:]:
        keyword_only = keyword_only or one.kind is inspect.Parameter.VAR_POSITIONAL
        if one.kind is inspect.Parameter.KEYWORD_ONLY and not keyword_only:
            parts.append("*")
            keyword_only = True
        parts.append(parameter(one))
    result = annotation(signature.return_annotation)
    if name.startswith("__"):
        result = RESULTS.get(name, "Tensor")
    return f"    def {name}({', '.join(parts)}) -> {result}: ...\n"


def test_the_stub_declares_every_method_as_it_is(request: pytest.FixtureRequest) -> None:
    wanted = HEAD + "".join(declared(name, METHODS[name]) for name in sorted(METHODS))
    if request.config.getoption("--update-golden"):
        STUB.write_text(wanted, encoding="utf-8")
        subprocess.run([sys.executable, "-m", "ruff", "format", "-q", str(STUB)], check=True)
    found = ast.parse(STUB.read_text(encoding="utf-8"))
    assert ast.unparse(found) == ast.unparse(ast.parse(wanted)), "write it anew with --update-golden"
