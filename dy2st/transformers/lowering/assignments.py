r"""Writes to attributes and items, augmented assignment, annotated assignment and `del` become calls.

>>> from dy2st.transformers.preview import preview
>>> print(preview("def f(a, i, v):\n    a.x = v\n    a.x[i] += v\n    del a.x"))
def f(a, i, v):
    _dy.set_attr(a, 'x', v)
    _object = _dy.attr(a, 'x')
    _dy.set_item(_object, i, _dy.aug('+=', _dy.item(_object, i), v))
    _dy.del_attr(a, 'x')
>>> print(preview("def f(a, v):\n    a.x, *y = v\n    del y"))
def f(a, v):
    _part, *_part_1 = _dy.unpack(v, 1, 0)
    _dy.set_attr(a, 'x', _part)
    y = _part_1
    y = _dy.undefined('y')
"""

from __future__ import annotations

from typing import Any

from dy2st.pysrc import templates, tree
from dy2st.transformers.lowering.reads import load
from dy2st.transformers.lowering.rewriter import Rewriter, walruses

_AUGMENTED = {
    "Add": "+=",
    "Sub": "-=",
    "Mult": "*=",
    "MatMult": "@=",
    "Div": "/=",
    "Mod": "%=",
    "Pow": "**=",
    "LShift": "<<=",
    "RShift": ">>=",
    "BitOr": "|=",
    "BitXor": "^=",
    "BitAnd": "&=",
    "FloorDiv": "//=",
}


def lower_assign(rw: Rewriter, node: Any) -> list[Any]:
    """Lower `targets = value`: the value first, then the targets from left to right."""
    target = node.targets[0]
    if all(only_names(target) for target in node.targets):
        node.value = _for_unpacking(rw, target, node.value) if len(node.targets) == 1 else rw.expr(node.value)
        return [node]
    if len(node.targets) == 1 and _may_wait(rw, target, node.value):
        return _write(rw, target, rw.expr(node.value))
    if len(node.targets) == 1 and _leaves(target) is not None:
        return _unpack(rw, target, _for_unpacking(rw, target, node.value))
    value = rw.context.variable("assigned")
    first = templates.statements(node, "NAME = VALUE", NAME=value, VALUE=rw.expr(node.value))
    for target in node.targets:
        read = templates.name(node, value)
        first += _unpack(rw, target, read) if _leaves(target) is not None else _write(rw, target, read)
    return first


def lower_ann_assign(rw: Rewriter, node: Any) -> list[Any]:
    """Lower `target: annotation = value`; in a function the annotation is not evaluated."""
    if node.value is None:
        evaluated = node.target if type(node.target).__name__ != "Name" else None
        parts = [] if evaluated is None else [evaluated.value, getattr(evaluated, "slice", None)]
        return [
            made
            for part in parts
            if part is not None
            for made in templates.statements(node, "VALUE", VALUE=rw.expr(part))
        ]
    return lower_assign(rw, templates.statement(node, "TARGET = VALUE", TARGET=node.target, VALUE=node.value))


def lower_aug_assign(rw: Rewriter, node: Any) -> list[Any]:
    """Lower `target op= value`: object and key once, then the old value, then the new one."""
    target, kind = node.target, type(node.target).__name__
    op = templates.literal(node, _AUGMENTED[type(node.op).__name__])
    if kind == "Name":
        outer = rw.context.unbound.get(target)
        old = templates.name(target, target.id) if outer is None else load(rw, target, outer)
        made = rw.make(node, "DY.aug(OP, OLD, VALUE)", OP=op, OLD=old, VALUE=rw.expr(node.value))
        return templates.statements(node, "TARGET = MADE", TARGET=target, MADE=made)
    before, obj = _once(rw, target.value, "object")
    if kind == "Attribute":
        values: dict[str, Any] = {"NAME": templates.literal(target, target.attr)}
        old_text, put_text = "DY.attr(OBJ, NAME)", "DY.set_attr(OBJ, NAME, MADE)"
    else:
        more, key = _once(rw, target.slice, "key")
        before += more
        values = {"NAME": key}
        old_text, put_text = "DY.item(OBJ, NAME)", "DY.set_item(OBJ, NAME, MADE)"
    old = rw.make(target, old_text, OBJ=_again(obj), NAME=_again(values["NAME"]))
    made = rw.make(node, "DY.aug(OP, OLD, VALUE)", OP=op, OLD=old, VALUE=rw.expr(node.value))
    call = rw.make(node, put_text, OBJ=obj, MADE=made, **values)
    return [*before, *templates.statements(node, "CALL", CALL=call)]


def lower_delete(rw: Rewriter, node: Any) -> list[Any]:
    """Lower `del`: a variable gets the placeholder."""
    made: list[Any] = []
    for target in node.targets:
        made += _delete(rw, target)
    return made


def _delete(rw: Rewriter, target: Any) -> list[Any]:
    kind = type(target).__name__
    if kind in ("Tuple", "List"):
        return [made for item in target.elts for made in _delete(rw, item)]
    if kind == "Attribute":
        name = templates.literal(target, target.attr)
        call = rw.make(target, "DY.del_attr(OBJ, NAME)", OBJ=rw.expr(target.value), NAME=name)
        return templates.statements(target, "CALL", CALL=call)
    if kind == "Subscript":
        call = rw.make(target, "DY.del_item(OBJ, KEY)", OBJ=rw.expr(target.value), KEY=rw.expr(target.slice))
        return templates.statements(target, "CALL", CALL=call)
    if rw.is_outside(target):
        return templates.statements(target, "del NAME", NAME=target.id)
    checked: list[Any] = []
    if target in rw.context.unbound:
        read = load(rw, target, rw.context.unbound[target])
        checked = templates.statements(target, "READ", READ=read)
    unset = rw.make(target, "DY.undefined(NAME)", NAME=templates.literal(target, target.id))
    return [*checked, *templates.statements(target, "NAME = UNSET", NAME=target.id, UNSET=unset)]


def only_names(target: Any) -> bool:
    """Return whether a target only binds variables."""
    return not any(type(node).__name__ in ("Attribute", "Subscript") for node in tree.walk(target))


def _leaves(target: Any) -> list[Any] | None:
    return target.elts if type(target).__name__ in ("Tuple", "List") else None


def _is_steady(rw: Rewriter, node: Any) -> bool:
    """Return whether reading a node gives the same, and raises nothing, before and after its neighbours run."""
    if type(node).__name__ == "Constant":
        return True
    if type(node).__name__ != "Name" or node in rw.context.unbound:
        return False
    owner = rw.scopes.owner(node) if node in rw.scopes.where else None
    return owner is not None and owner is rw.scope and node.id not in rw.scopes.rebound[owner]


def _may_wait(rw: Rewriter, target: Any, value: Any) -> bool:
    """Return whether object and key of a target may be evaluated before the value."""
    kind = type(target).__name__
    if kind not in ("Attribute", "Subscript"):
        return False
    if type(value).__name__ == "Constant" or _is_steady(rw, value):
        return True
    parts = [target.value, *([target.slice] if kind == "Subscript" else [])]
    return all(_is_steady(rw, part) for part in parts) and not walruses(value)


def _write(rw: Rewriter, target: Any, value: Any) -> list[Any]:
    """Assign a value that was evaluated already to one target."""
    kind = type(target).__name__
    if kind == "Attribute":
        name = templates.literal(target, target.attr)
        call = rw.make(target, "DY.set_attr(OBJ, NAME, VALUE)", OBJ=rw.expr(target.value), NAME=name, VALUE=value)
        return templates.statements(target, "CALL", CALL=call)
    if kind == "Subscript":
        obj, key = rw.expr(target.value), rw.expr(target.slice)
        call = rw.make(target, "DY.set_item(OBJ, KEY, VALUE)", OBJ=obj, KEY=key, VALUE=value)
        return templates.statements(target, "CALL", CALL=call)
    return templates.statements(target, "TARGET = VALUE", TARGET=target, VALUE=value)


def _for_unpacking(rw: Rewriter, target: Any, value: Any) -> Any:
    """Lower a value that is unpacked into `target`: how many parts are wanted is known here."""
    parts, lowered = _leaves(target), rw.expr(value)
    if parts is None or type(value).__name__ in ("Tuple", "List"):
        return lowered
    starred = [i for i, part in enumerate(parts) if type(part).__name__ == "Starred"]
    before = starred[0] if starred else len(parts)
    after = len(parts) - before - 1 if starred else None
    counts = [templates.literal(value, n) for n in (before, after)]
    if after is None:
        return rw.make(value, "DY.unpack(VALUE, BEFORE)", VALUE=lowered, BEFORE=counts[0])
    return rw.make(value, "DY.unpack(VALUE, BEFORE, AFTER)", VALUE=lowered, BEFORE=counts[0], AFTER=counts[1])


def _unpack(rw: Rewriter, target: Any, value: Any) -> list[Any]:
    """Unpack into variables of our own first, then assign each target in order."""
    if only_names(target):
        return _write(rw, target, value)
    after: list[Any] = []

    def take(node: Any) -> Any:
        if _leaves(node) is not None:
            node.elts = [take(item) for item in node.elts]
            return node
        if type(node).__name__ == "Starred":
            node.value = take(node.value)
            return node
        part = rw.context.variable("part")
        after.append((node, part))
        return templates.name(node, part, "Store")

    made = templates.statements(target, "TARGET = VALUE", TARGET=take(target), VALUE=value)
    for leaf, part in after:
        made += _write(rw, leaf, templates.name(leaf, part))
    return made


def _once(rw: Rewriter, node: Any, base: str) -> tuple[list[Any], Any]:
    """Evaluate something that is used twice only once."""
    if _is_steady(rw, node):
        return [], rw.expr(node)
    name = rw.context.variable(base)
    return templates.statements(node, "NAME = VALUE", NAME=name, VALUE=rw.expr(node)), templates.name(node, name)


def _again(node: Any) -> Any:
    """Read a constant or variable a second time."""
    if type(node).__name__ == "Constant":
        return templates.literal(node, node.value)
    return templates.name(node, node.id)
