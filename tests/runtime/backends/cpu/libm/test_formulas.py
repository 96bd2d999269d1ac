"""Each native form of an elementwise op is one that an op reaches, and each that an op claims is there."""

from collections.abc import Callable
from typing import Any

import pytest

from dy2st.ir.opdef import REGISTRY
from dy2st.runtime.backends.cpu.libm import load_formulas
from dy2st.runtime.backends.cpu.libm.core.registry import INSIDE, formula
from dy2st.runtime.backends.cpu.vector_ops import elementwise, integer_functions

_FOLDER = "dy2st.runtime.backends.cpu.libm.formulas"


def missing() -> list[str]:
    """Return the ops whose formula is not where they say."""
    found = {name: made.__module__ for name, made in load_formulas().items()}
    said = {name: f"{_FOLDER}.{op.formula}" for name, op in REGISTRY.items() if op.formula}
    return [name for name, module in said.items() if found.get(name) != module]


def unreached() -> list[str]:
    """Return the formulas of which no op says that it has one, and that are part of no other op."""
    return [name for name in load_formulas() if INSIDE.get(name, name) not in REGISTRY or not is_claimed(name)]


def is_claimed(name: str) -> bool:
    return name in INSIDE or bool(REGISTRY[name].formula)


def unwritten() -> list[str]:
    """Return the rules for instructions whose op never comes into a loop nest."""
    rules = (*elementwise.RULES, *integer_functions.FUNCTIONS)
    copies = "detach"  # what a nest that copies is made of
    in_nests = [name for name, op in REGISTRY.items() if op.elementwise or op.splat is not None or name == copies]
    return [name for name in rules if name not in in_nests]


def test_every_op_has_the_formula_that_it_claims() -> None:
    assert missing() == []


def test_every_formula_is_that_of_an_op() -> None:
    assert unreached() == []


def test_every_rule_is_that_of_an_op_in_loop_nests() -> None:
    assert unwritten() == []


def test_a_claim_without_a_formula_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(REGISTRY["conj"]), "formula", "activations")
    assert missing() == ["conj"]


def test_a_formula_in_another_module_than_claimed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(REGISTRY["tanh"]), "formula", "activations")
    assert missing() == ["tanh"]


@pytest.mark.parametrize("name", ["softsign", "conj"])
def test_a_formula_that_no_op_reaches_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(load_formulas(), name, _named(name))
    assert unreached() == [name]


def test_a_formula_inside_of_an_op_that_is_none_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(INSIDE, "softsign", "no_op")
    monkeypatch.setitem(load_formulas(), "softsign", _named("softsign"))
    assert unreached() == ["softsign"]


def test_a_rule_that_no_op_reaches_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(elementwise.RULES, "sort", elementwise.RULES["add"])
    assert unwritten() == ["sort"]


def test_two_formulas_of_one_name_are_refused() -> None:
    load_formulas()
    with pytest.raises(ValueError, match="two formulas are named 'tanh'"):
        formula(_named("tanh"))


def _named(name: str) -> Callable[..., Any]:
    def made(e: Any, x: Any) -> Any:
        return x

    made.__name__ = name
    return made
