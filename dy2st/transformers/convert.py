"""`convert(fn)`: the converted form of a function, once per source text.

>>> from dy2st.transformers import is_converted_code
>>> is_converted_code(Converted.make.__code__)
False
"""

from __future__ import annotations

import ast
import threading
import types
import weakref
from typing import Any

from dy2st.errors import ConversionError
from dy2st.naming import is_plain_module
from dy2st.pysrc import origin, source, templates, tree
from dy2st.records import field, record, replace
from dy2st.transformers import private_names
from dy2st.transformers.codegen import LazyText, compile_function
from dy2st.transformers.pipeline import PASSES
from dy2st.transformers.preview import new_context


@record(frozen=True)
class Converted:
    """A converted function, waiting for a helper."""

    original: str  # as the user wrote it
    file: str
    firstlineno: int
    code: types.CodeType = field(repr=False)
    helper: str = field(repr=False)  # the free variable that holds the helper
    print: LazyText = field(repr=False, compare=False)
    fn: weakref.ref[types.FunctionType] = field(repr=False, compare=False)

    @property
    def source(self) -> str:
        """Return the converted source, readable."""
        return self.print()

    def make(self, helper: object, fn: types.FunctionType | None = None) -> types.FunctionType:
        """Make a function that asks `helper`, with the cells, defaults and attributes of `fn`.

        `fn` is the function that was converted, unless another one with the same code is given.
        """
        fn = self.fn() if fn is None else fn
        if fn is None:
            raise ReferenceError("the function that was converted is gone: pass it to make()")
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        cells[self.helper] = types.CellType(helper)
        closure = tuple(cells[name] for name in self.code.co_freevars)
        made = types.FunctionType(self.code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
        made.__qualname__, made.__module__, made.__doc__ = fn.__qualname__, fn.__module__, fn.__doc__
        made.__kwdefaults__ = fn.__kwdefaults__
        made.__dict__.update(fn.__dict__)
        _copy_annotations(fn, made)
        return made


def _copy_annotations(fn: Any, made: Any) -> None:
    """Share annotations, lazily where Python evaluates them lazily (3.14)."""
    if hasattr(fn, "__annotate__"):
        made.__annotate__ = fn.__annotate__
    else:
        made.__annotations__ = fn.__annotations__
    if hasattr(fn, "__type_params__"):
        made.__type_params__ = fn.__type_params__


class _ByCode:
    """Values kept for code objects, by identity (equal code may stand in two files), as long as those live."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref[types.CodeType], Any]] = {}

    def get(self, code: types.CodeType) -> Any:
        found = self._kept.get(id(code))
        return found[1] if found is not None and found[0]() is code else None

    def put(self, code: types.CodeType, value: Any) -> None:
        key = id(code)

        def forget(gone: weakref.ref[types.CodeType]) -> None:
            if (found := self._kept.get(key)) is not None and found[0] is gone:
                del self._kept[key]

        self._kept[key] = weakref.ref(code, forget), value


_converted, _generated = _ByCode(), _ByCode()
_texts: dict[Any, tuple[Converted, frozenset[str], frozenset[str]]] = {}
"""The last conversions, by source text and equal code: a cell or module that runs again is not converted again."""
MOST_TEXTS = 512
_lock = threading.RLock()


def is_converted_code(code: types.CodeType) -> bool:
    """Say whether a code object came out of a conversion (functions inside converted functions included)."""
    return _generated.get(code) is not None


def convert(fn: types.FunctionType) -> Converted:
    """Convert a function; the work is done once per source text (and set of modules that it names).

    Raises
    ------
    ConversionError
        There is no source, the source was edited, or the function is `async`.
    """
    with _lock:
        known: list[tuple[frozenset[str], frozenset[str], Converted]] = _converted.get(fn.__code__) or []
        for asked, modules, converted in known:
            if _modules(fn, asked) == modules:
                return _of(converted, fn)
        converted, asked, modules = _convert(fn)
        _converted.put(fn.__code__, [*known, (asked, modules, converted)])
        return _of(converted, fn)


def _of(converted: Converted, fn: types.FunctionType) -> Converted:
    if converted.fn() is fn:
        return converted
    return replace(converted, fn=weakref.ref(fn))


def _modules(fn: types.FunctionType, names: frozenset[str]) -> frozenset[str]:
    """Return the names that are bound to modules of libraries around a function; those of the user's hold state."""
    return frozenset(name for name in names if _is_library(_outside(fn, name)))


def _is_library(x: object) -> bool:
    return isinstance(x, types.ModuleType) and is_plain_module(x.__name__)


def _outside(fn: types.FunctionType, name: str) -> object:
    if name in fn.__code__.co_freevars and fn.__closure__ is not None:
        try:
            return fn.__closure__[fn.__code__.co_freevars.index(name)].cell_contents
        except ValueError:  # not assigned yet
            return None
    return fn.__globals__.get(name)


def _convert(fn: types.FunctionType) -> tuple[Converted, frozenset[str], frozenset[str]]:
    found = source.find(fn)
    if isinstance(found.node, ast.AsyncFunctionDef):
        raise ConversionError(
            f"`{fn.__qualname__}` cannot be converted: an `async def` runs on an event loop, which a Program has not",
            file=found.file,
            line=found.node.lineno,
            hint="Convert the functions that it awaits or calls instead.",
        )
    key = found.file, found.text, found.class_name, fn.__code__
    known = _texts.get(key)
    if known is not None and _modules(fn, known[1]) == known[2]:
        return known
    made = _transform(fn, found)
    _texts[key] = made
    while len(_texts) > MOST_TEXTS:
        del _texts[next(iter(_texts))]
    return made


def _transform(fn: types.FunctionType, found: source.Found) -> tuple[Converted, frozenset[str], frozenset[str]]:
    root: Any = _definition(found.node)
    asked = _roots(root)
    modules = _modules(fn, asked)
    context = new_context(root, modules, fn.__code__.co_freevars)
    if isinstance(found.node, ast.Lambda):
        root.name = context.names.fresh("lambda")
    private_names.transform(root, context, found.class_name)
    for _, transform in PASSES:
        transform(root, context)
    code, text = compile_function(context, fn.__code__, source.future_flags(fn.__code__))
    _remember(code)
    first = fn.__code__.co_firstlineno
    converted = Converted(found.text, found.file, first, code, context.helper, text, weakref.ref(fn))
    return converted, asked, modules


def _definition(node: source.Node) -> Any:
    """Return a function as a `def` without decorators; a lambda becomes a `def` that returns its value."""
    made: Any = tree.from_ast(node)
    if not isinstance(node, ast.Lambda):
        made.decorator_list = []
        return made
    spot = origin.place(node)
    function = templates.statement(spot, "def NAME():\n    return VALUE", NAME="name", VALUE=made.body)
    function.args = made.args
    return function


def _roots(root: Any) -> frozenset[str]:
    """List the names that dotted paths start with."""
    found: set[str] = set()
    for node in tree.walk(root):
        value: Any = getattr(node, "value", None)
        if type(node).__name__ == "Attribute" and type(value).__name__ == "Name":
            found.add(value.id)
    return frozenset(found)


def _remember(code: types.CodeType) -> None:
    _generated.put(code, True)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            _remember(const)
