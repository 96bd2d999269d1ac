"""The table of rules: which function writes which operation."""

from __future__ import annotations

from collections.abc import Callable

from dy2st.runtime.cpu.writer import Rule

RULES: dict[str, Rule] = {}
STRIDED = frozenset(
    {
        "dim",
        "index",
        "transpose",
        "split",
        "expand_dims",
        "squeeze",
        "detach",
        "matmul",
        "matmul_add",
        "attention",
        "attention_grad",
        "attention_mask_grad",
        "flip",
        "diagonal",
    }
)
"""The ops whose rules read tensors with gaps."""
AS_THEY_ARE = frozenset(
    {
        *("cond", "while_loop", "counted_while", "call", "try", "assert"),
        *("list_new", "list_append", "list_get", "list_pop", "list_set", "list_take", "list_clear"),
        *("tuple_new", "tuple_get", "variant_new", "variant_get", "variant_or_zeros"),
    }
)
"""The ops whose rules take small tensors as they are: those that only carry them."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Enter a function as the rule of these ops."""

    def enter(function: Rule) -> Rule:
        for name in names:
            if name in RULES:
                raise ValueError(f"two rules write {name!r}")
            RULES[name] = function
        return function

    return enter
