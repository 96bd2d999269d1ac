"""Reverse mode through `call`: the gradient of a function is a function, so recursion needs nothing more.

It takes what the function takes, then the cotangents of its results, and gives the cotangents of its arguments: those
of a function that calls itself are optional, because their form is needed before they are built. Any other one is given
the cotangents so far of lists, and of tensors of which it reads parts, to add to them. The forward function
stays as it is: what the way back needs is computed again, which costs a function that calls itself n deep n runs more,
but needs no tape whose types would hold themselves. What the function prints is not printed again; random numbers are
the same, because their draw numbers are operands.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.autodiff.cotangents import Cotangents, accumulate, as_optional, may_miss, missing
from dy2st.autodiff.forward import functions_of
from dy2st.autodiff.loops import CarryForm, form_of
from dy2st.autodiff.reverse import CONTROL, Frontier, pull_back
from dy2st.ir.builder import Builder
from dy2st.ir.clone import clone_block
from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.types import TensorType, Type, optional, tangent_type
from dy2st.passes.remove_prints import silence


def pull_call(frontier: Frontier, operation: Operation, cts: Sequence[Value | None]) -> None:
    """Emit the call of the function's gradient."""
    b, operands = frontier.b, operation.operands
    wanted = [v in frontier.active for v in operands]
    forms = [form_of(ct, v) for ct, v in zip(cts, operation.results, strict=True)]
    name = operation.attributes["function"]
    lent = {} if calls_itself(functions_of(b, name), name) else frontier.lists_so_far(operation)
    found = [v for v, one in zip(operands, wanted, strict=True) if one]
    function = gradient_function(b, name, wanted, forms, [form_of(lent.get(v), v) for v in found])
    made = functions_of(b, function)[function].results or [None] * len(found)  # None: it is being built
    types = (_found_type(v.type, one is None or may_miss(one, v)) for v, one in zip(found, made, strict=True))
    attributes = {"function": function, "types": tuple(types)}
    given = [*operands, *(ct for ct in cts if ct is not None), *(lent[v] for v in found if v in lent)]
    for value, ct in zip(found, b.operation("call", given, attributes).results, strict=True):
        frontier.add(value, ct)


def _found_type(of: Type, loose: bool) -> Type:
    of = tangent_type(of)
    return optional(of) if loose and isinstance(of, TensorType) else of


def calls_itself(functions: dict[str, Block], name: str) -> bool:
    """Return whether a function calls itself, directly or not."""
    reached = [name]
    for one in reached:
        called = [o.attributes["function"] for o in functions[one].walk() if o.op.is_call]
        if name in called:
            return True
        reached += [c for c in dict.fromkeys(called) if c in functions and c not in reached]
    return False


def gradient_function(
    b: Builder, name: str, wanted: Sequence[bool], forms: Sequence[CarryForm], lent: Sequence[CarryForm]
) -> str:  # fmt: skip
    """Return the name of the gradient of a function for these arguments and forms of its results' cotangents.

    `lent` are the forms of cotangents of the arguments `wanted` that it is given to add to, behind all others.
    """
    functions = functions_of(b, name)
    loose = calls_itself(functions, name)
    letters = "".join(form.value[0] for form in (*forms, *lent))
    made = f"{name}__vjp_{''.join(str(int(one)) for one in wanted)}_{letters}"
    if made in functions:
        return made
    block = functions[made] = clone_block(functions[name])  # there before it is built: it may call itself
    leaving, block.results = block.results, []
    inner = Builder(block, names=b.names)
    inner.functions, inner.location = functions, b.location
    roots = [a for a, one in zip(block.arguments, wanted, strict=True) if one]
    cts: Cotangents = {}
    for result, form in zip(leaving, forms, strict=True):
        if form is not CarryForm.ABSENT:
            cts[result] = accumulate(inner, cts.get(result), inner.argument(form.type(result.type), "ct"))
    for root, form in zip(roots, lent, strict=True):
        if form is not CarryForm.ABSENT:
            cts[root] = accumulate(inner, cts.get(root), inner.argument(form.type(root.type), "ct"))
    found = pull_back(inner, block, roots, cts)
    block.results = [_result(inner, found.get(root), root.type, loose) for root in roots]
    silence(block, functions)
    return made


def _result(b: Builder, ct: Value | None, of: Type, loose: bool) -> Value:
    kind = _found_type(of, True)
    if isinstance(tangent_type(of), TensorType) and (loose or ct is None):
        return as_optional(b, ct, kind)
    return missing(b, kind) if ct is None else b.use(ct)


CONTROL["call"] = pull_call
