"""What the transformers of one conversion share: facts about nodes of the tree, kept beside it."""

from __future__ import annotations

import ast

from dy2st.naming import Names
from dy2st.pysrc import tree
from dy2st.records import field, record


@record(frozen=True)
class Plan:
    """The variables of one `if`, `while` or `for` that becomes a call of the helper."""

    names: tuple[str, ...]  # assigned inside and wanted afterwards, or in the next iteration
    nonlocals: tuple[str, ...]  # what its functions declare
    globals: tuple[str, ...]
    foreign: tuple[str, ...]  # of `names`: globals and variables of unconverted functions, which may be missing
    stale: tuple[str, ...] = ()  # of `names`: not read before they are assigned; an earlier trace may have set them


@record
class Context:
    """One conversion."""

    root: tree.Function
    names: Names
    free: frozenset[str] = frozenset()  # variables of the functions around, in unconverted code
    modules: frozenset[str] = frozenset()  # names outside of the function that are bound to modules
    helper: str = "_dy"
    native: set[ast.AST] = field(default_factory=set[ast.AST])  # statements and expressions that stay Python
    unbound: dict[ast.AST, bool] = field(default_factory=dict[ast.AST, bool])  # reads that may find nothing
    locals: dict[ast.AST, list[str]] = field(default_factory=dict[ast.AST, list[str]])  # as the user wrote them
    comprehensions: dict[str, ast.AST] = field(default_factory=dict[str, ast.AST])
    loop_tests: dict[ast.AST, ast.expr] = field(default_factory=dict[ast.AST, ast.expr])
    variables: set[str] = field(default_factory=set[str])  # made up by transformers
    labels: dict[str, str] = field(default_factory=dict[str, str])  # what errors call a made-up variable
    plans: dict[ast.AST, Plan] = field(default_factory=dict[ast.AST, Plan])
    placeholders: dict[ast.AST, list[str]] = field(default_factory=dict[ast.AST, list[str]])
    unset: dict[ast.AST, set[str]] = field(default_factory=dict[ast.AST, set[str]])  # may hold a placeholder later on
    thunks: set[ast.AST] = field(default_factory=set[ast.AST])  # generated lambdas
    parameters: dict[str, str] = field(default_factory=dict[str, str])
    functions: dict[str, str] = field(default_factory=dict[str, str])  # name of a generated function -> its part

    def variable(self, base: str, label: str | None = None) -> str:
        """Make up a variable."""
        name = self.names.fresh(base)
        self.variables.add(name)
        if label is not None:
            self.labels[name] = label
        return name

    def shared(self, base: str) -> str:
        """Return the one name for a parameter of generated functions."""
        if base not in self.parameters:
            self.parameters[base] = self.variable(base)
        return self.parameters[base]

    def function(self, part: str, *, shared: bool = True) -> str:
        """Name a generated function after its part; constructs that follow each other share the name."""
        for name, known in self.functions.items():
            if shared and known == part:
                return name
        name = self.names.fresh(part)
        self.functions[name] = part
        return name
