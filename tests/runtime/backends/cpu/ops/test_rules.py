"""Which file has the rule of an operation."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

from dy2st.ir.opdef import REGISTRY
from dy2st.runtime.backends.cpu import ops as rules
from dy2st.runtime.backends.cpu.ops import registry, rule_of
from dy2st.runtime.backends.cpu.ops.registry import FILES, rule

_LOADED = """
import sys
import dy2st as paddle
from dy2st.runtime.backends.cpu.compile import lowered
from tests.runtime.programs import program_of
import numpy as np
lowered(program_of(lambda x: paddle.sort(x + 1), np.ones((3, 4), "float32")))
names = ("control.control_flow", "matrix.reductions", "matrix.sorting", "containers.unions")
print([name for name in names if f"RULES.{name}" in sys.modules])
"""


def test_the_files_of_rules_have_the_rules_that_the_table_says():
    for module in pkgutil.walk_packages(rules.__path__, f"{rules.__name__}."):
        importlib.import_module(module.name)
    assert registry._rules.keys() == FILES.keys()


def test_each_op_of_the_table_is_one():
    assert FILES.keys() <= REGISTRY.keys()


@pytest.mark.parametrize(("name", "has"), [("topk", True), ("where", True), ("zeros_like", True), ("print", False)])
def test_an_op_has_a_rule_or_none(name, has):
    assert (rule_of(name) is not None) == has


def test_a_rule_that_the_table_does_not_know_is_refused():
    with pytest.raises(ValueError, match=r"does not say that .*test_rules has the rule of 'print'"):
        rule("print")(test_a_rule_that_the_table_does_not_know_is_refused)


def test_two_rules_for_one_op_are_refused():
    written = rule_of("topk")
    with pytest.raises(ValueError, match="two rules write 'topk'"):
        rule("topk")(written)


def test_only_files_are_loaded_whose_operations_there_are():
    script = _LOADED.replace("RULES", rules.__name__)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout == "['matrix.sorting']\n"
