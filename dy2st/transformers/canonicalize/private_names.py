r"""`__name` inside a class is `_Class__name`: spell it out, as names become text in calls of the helper.

>>> from dy2st.transformers.preview import preview
>>> print(preview("def f(self):\n    return self.__x + self.__x__", "private_names", class_name="Net"))
def f(self):
    return self._Net__x + self.__x__
"""

from __future__ import annotations

from typing import Any

from dy2st.pysrc import tree
from dy2st.transformers.core.context import Context

_FIELDS = ("id", "attr", "arg", "asname", "name", "rest")
_LISTS = ("names", "kwd_attrs")


def transform(root: Any, context: Context, class_name: str | None = None) -> None:
    """Spell out the private names of the class around the function, and of classes inside it."""
    for child in tree.children(root):
        _walk(child, class_name)


def _walk(node: Any, class_name: str | None) -> None:
    inner = class_name
    if type(node).__name__ == "ClassDef":
        for part in [*node.bases, *node.keywords, *node.decorator_list]:
            _walk(part, class_name)
        for part in node.body:
            _walk(part, node.name)
        node.name = mangled(node.name, class_name)
        return
    if class_name is not None:
        for field in _FIELDS:
            if isinstance(getattr(node, field, None), str):
                setattr(node, field, mangled(getattr(node, field), class_name))
        for field in _LISTS:
            texts: Any = getattr(node, field, [])
            if texts and isinstance(texts[0], str):
                setattr(node, field, [mangled(text, class_name) for text in texts])
    for child in tree.children(node):
        _walk(child, inner)


def mangled(name: str, class_name: str | None) -> str:
    """Return the name that Python uses for `name` inside a class.

    >>> mangled("__x", "_Net"), mangled("__x__", "Net"), mangled("x", "Net"), mangled("__x", "__")
    ('_Net__x', '__x__', 'x', '__x')
    """
    stem = (class_name or "").lstrip("_")
    if not stem or not name.startswith("__") or name.endswith("__") or "." in name:
        return name
    return f"_{stem}{name}"
