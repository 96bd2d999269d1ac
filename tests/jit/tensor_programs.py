"""Random functions of tensors for hypothesis: nested control flow, lists, attributes, in-place writes, early exits.

Every function takes a vector `x`, a 0-D float `t`, an integer tensor `n` and an object `box`; every loop ends.
"""

from hypothesis import strategies as st

VECTORS, NUMBERS = ("a", "b"), ("s", "r")


def _indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


small = st.sampled_from(["0.5", "1.5", "2.0", "-1.0", "3"])


@st.composite
def vector(draw: st.DrawFn, depth: int = 1) -> str:
    """An expression that is a vector."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(["a", "b", "x", "a", "box.state"]))
    inner = vector(depth - 1)
    kind = draw(st.integers(0, 8))
    return [
        lambda: f"({draw(inner)} + {draw(inner)})",
        lambda: f"({draw(inner)} * {draw(inner)})",
        lambda: f"({draw(inner)} - {draw(number(depth - 1))})",
        lambda: f"({draw(inner)} * {draw(small)})",
        lambda: f"paddle.tanh({draw(inner)})",
        lambda: f"({draw(inner)} if {draw(test())} else {draw(inner)})",
        lambda: "(out[-1] if len(out) > 0 else x)",
        lambda: f"half({draw(inner)})",
        lambda: f"paddle.stack([{draw(number(depth - 1))} * t, s + 0 * t])",
    ][kind]()


@st.composite
def number(draw: st.DrawFn, depth: int = 1) -> str:
    """An expression that is a 0-D tensor or a Python number."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(["s", "r", "t", "0.5", "2", "box.count"]))
    kind = draw(st.integers(0, 5))
    return [
        lambda: f"{draw(vector(depth - 1))}.sum()",
        lambda: f"{draw(vector(depth - 1))}[0]",
        lambda: f"({draw(number(depth - 1))} + {draw(number(depth - 1))})",
        lambda: f"({draw(number(depth - 1))} * {draw(small)})",
        lambda: "len(out)",
        lambda: f"({draw(number(depth - 1))} if {draw(test())} else {draw(number(depth - 1))})",
    ][kind]()


@st.composite
def test(draw: st.DrawFn) -> str:
    """A condition: on tensors, on Python values, or on both."""
    kind = draw(st.integers(0, 8))
    return [
        lambda: f"{draw(st.sampled_from(VECTORS))}.sum() > {draw(small)}",
        lambda: f"{draw(st.sampled_from(NUMBERS))} < {draw(small)}",
        lambda: f"n > {draw(st.integers(0, 3))}",
        lambda: f"len(out) > {draw(st.integers(0, 2))}",
        lambda: f"box.count < {draw(st.integers(0, 3))}",
        lambda: f"(t > 0 and {draw(st.sampled_from(NUMBERS))} < {draw(small)})",
        lambda: f"not (n == 2 or s > {draw(small)})",
        lambda: f"-1 < {draw(st.sampled_from(NUMBERS))} <= {draw(small)}",
        lambda: "keep is None",
    ][kind]()


@st.composite
def simple(draw: st.DrawFn, in_loop: bool) -> list[str]:
    """A statement without a body."""
    kinds = ["vector", "vector", "number", "augment", "append", "attribute", "count", "keep", "print"]
    kinds += ["item", "pop", "write", "return", "raise", "pair", "scale", "grow"]
    kinds += ["break", "continue"] if in_loop else []
    kind = draw(st.sampled_from(kinds))
    v, s = draw(st.sampled_from(VECTORS)), draw(st.sampled_from(NUMBERS))
    made = {
        "vector": lambda: [f"{v} = {draw(vector(2))}"],
        "number": lambda: [f"{s} = {draw(number(2))}"],
        "augment": lambda: [
            f"{draw(st.sampled_from([v, s]))} {draw(st.sampled_from(['+=', '-=', '*=']))} {draw(small)}"
        ],
        "append": lambda: [f"out.append({draw(vector(1))})"],
        "attribute": lambda: [f"box.state = {draw(vector(1))}"],
        "count": lambda: ["box.count += 1"],
        "keep": lambda: [f"keep = {draw(st.sampled_from(['None', 'a', 's', '3']))}"],
        "print": lambda: [f"print('at', {draw(st.sampled_from(['box.count', 'len(out)', 'n']))})"],
        "item": lambda: ["if len(out) > 0:", f"    out[{draw(st.sampled_from(['0', '-1']))}] = {draw(vector(1))}"],
        "pop": lambda: ["if len(out) > 1:", f"    {v} = out.pop()"],
        "write": lambda: [f"{v} = {v} * 1", f"{v}[{draw(st.integers(0, 1))}] = {draw(number(1))}"],
        "return": lambda: [f"return {draw(st.sampled_from([v, s, 'out', f'({v}, {s})', 'None', 'keep']))}"],
        "raise": lambda: [f"raise ValueError('stop {draw(st.integers(0, 9))}')"],
        "pair": lambda: [f"{v}, {s} = {draw(vector(1))}, {draw(number(1))}"],
        "scale": lambda: [f"{v} = scale({v})"],
        "grow": lambda: [f"out = out + [{draw(vector(1))}]"],
        "break": lambda: ["break"],
        "continue": lambda: ["continue"],
    }[kind]()
    if kind in ("return", "raise", "break", "continue") and draw(st.integers(0, 3)):
        return [f"if {draw(test())}:", *_indent(made)]
    return made


@st.composite
def statements(draw: st.DrawFn, depth: int, in_loop: bool = False) -> list[str]:
    """A block."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        if depth and draw(st.booleans()):
            lines += draw(compound(depth, in_loop))
        else:
            lines += draw(simple(in_loop))
    return lines


@st.composite
def compound(draw: st.DrawFn, depth: int, in_loop: bool) -> list[str]:
    """A statement with a body."""
    body = _indent(draw(statements(depth - 1, in_loop)))
    kind = draw(st.integers(0, 6))
    if kind <= 1:
        orelse = ["else:", *_indent(draw(statements(depth - 1, in_loop)))] if draw(st.booleans()) else []
        return [f"if {draw(test())}:", *body, *orelse]
    body = _indent(draw(statements(depth - 1, True)))
    orelse = ["else:", *_indent(draw(statements(depth - 1, in_loop)))] if draw(st.integers(0, 3)) == 0 else []
    if kind == 2:
        turns = f"turns{depth}"
        return [f"{turns} = 0", f"while {draw(test())} and {turns} < 4:", f"    {turns} += 1", *body, *orelse]
    if kind == 3:
        return ["for row in rows:", "    b = row * 1.0", *body, *orelse]
    if kind == 4:
        return [f"for i{depth} in range(n):", f"    s = s + i{depth}", *body, *orelse]
    if kind == 5:
        return [f"for i{depth} in range(3):", f"    r = r + i{depth}", *body, *orelse]
    return [f"for i{depth}, v{depth} in enumerate(x):", f"    s = s + v{depth} * i{depth}", *body, *orelse]


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The text of `program(x, t, n, box)`; `half` and `rows` stand beside it."""
    body = draw(statements(3))
    start = [
        "a, b, s, r, out, keep = x * 1.0, x * 2.0, t * 1.0, 1.0, [], None",
        "def scale(v):",
        "    return v * s if s > 0 else v",
    ]
    end = ["return a, b, s, r, out, keep"]
    return "\n".join(["def program(x, t, n, rows, box):", *_indent([*start, *body, *end]), ""])
