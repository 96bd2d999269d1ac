"""Random programs for hypothesis: nested control flow over a few variables, with a log of what ran."""

from hypothesis import strategies as st

NAMES = ("a", "b", "c", "d")


def _indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


names = st.sampled_from(NAMES)
numbers = st.integers(-2, 3).map(str)


def expressions(depth: int = 1) -> st.SearchStrategy[str]:
    leaf = st.one_of(names, names, numbers)
    if depth == 0:
        return leaf
    inner = expressions(depth - 1)
    return st.one_of(
        leaf,
        st.builds("({} + {})".format, inner, inner),
        st.builds("({} - {})".format, inner, inner),
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or not {})".format, inner, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("(0 < {} <= {})".format, inner, inner),
        st.builds("log({})".format, inner),
        st.builds("({} := {})".format, names, inner),
        st.builds("sum([{} for {} in range(2)])".format, inner, names),
        st.builds("len([{0} for {1} in range(3) if {2}])".format, inner, names, inner),
        st.builds("(lambda {}: {})({})".format, names, inner, inner),
    )


exprs = st.one_of(expressions(1), expressions(2))


@st.composite
def simple(draw: st.DrawFn, in_loop: bool) -> list[str]:
    kinds = ["assign", "assign", "aug", "log", "del", "return", "raise", "assert", "pair", "inc"]
    kinds += ["break", "continue"] * 2 if in_loop else []
    kind = draw(st.sampled_from(kinds))
    name, value = draw(names), draw(exprs)
    return [
        {
            "assign": f"{name} = {value}",
            "aug": f"{name} += {value}",
            "log": f"log({value})",
            "del": f"del {name}",
            "return": f"return {value}",
            "raise": f"raise ValueError({value})",
            "assert": f"assert {value}, {name}",
            "pair": f"{name}, {draw(names)} = {value}, {draw(exprs)}",
            "inc": "bump()",
            "break": "break",
            "continue": "continue",
        }[kind]
    ]


@st.composite
def block(draw: st.DrawFn, depth: int, in_loop: bool) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 2))):
        lines += draw(statement(depth, in_loop))
    return lines


@st.composite
def statement(draw: st.DrawFn, depth: int, in_loop: bool) -> list[str]:
    kinds = ["simple", "simple", *(["if", "if", "for", "while", "try", "with", "match", "def"] if depth else [])]
    kind = draw(st.sampled_from(kinds))
    if kind == "simple":
        return draw(simple(in_loop))
    value = draw(exprs)

    def part(loop: bool = in_loop) -> list[str]:
        return _indent(draw(block(depth - 1, loop)))

    def maybe(head: str) -> list[str]:
        return [head, *part()] if draw(st.booleans()) else []

    if kind == "if":
        return [f"if {value}:", *part(), *maybe(f"elif {draw(exprs)}:"), *maybe("else:")]
    if kind == "for":
        return [f"for {draw(names)} in range(abs(int({value})) % 4):", *part(True), *maybe("else:")]
    if kind == "while":
        return [f"while tick() and {value}:", *part(True), *maybe("else:")]
    if kind == "try":
        handler = draw(st.sampled_from(["except ValueError as a:", "except (TypeError, NameError):"]))
        caught = [handler, *part(), *maybe("else:")]
        return ["try:", *part(), *(caught if draw(st.booleans()) else []), "finally:", *part()]
    if kind == "with":
        return [f"with manager() as {draw(names)}:", *part()]
    if kind == "match":
        return [f"match {value}:", "    case 0:", *_indent(part()), "    case b if b > 1:", *_indent(part())]
    name = draw(names)
    return ["def inner(a=1):", f"    nonlocal {name}" if name != "a" else "    pass", *part(False), "inner()"]


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Draw the source of `def program(a, b)`."""
    body = [*draw(block(3, False)), f"return {draw(exprs)}"]
    start = [
        "def bump():",
        "    nonlocal a",
        "    a = a + 1",
        "c = d = None",
        "del d" if draw(st.booleans()) else "pass",
    ]
    return "\n".join(["def program(a, b):", *_indent([*start, *body]), ""])
