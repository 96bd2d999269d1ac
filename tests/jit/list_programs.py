"""Functions that rebuild a list in a loop and leave it in every way: how it is rebuilt, what holds it, how the loop is
left, which other name it has, and what is done with it behind the loop.
"""

from __future__ import annotations

import random

REBUILT = {
    "plus": ["{o} = {o} + [{e}]"],
    "star": ["{o} = [*{o}, {e}]"],
    "append": ["{o}.append({e})"],
    "in place": ["{o} += [{e}, {more}]"],
    "slice": ["{o} = {o}[:]", "{o}.append({e})"],
    "copy": ["{o} = {o}.copy()", "{o}.extend([{e}, {more}])"],
    "comprehension": ["{o} = [q * 1.5 for q in {o}] + [{e}]"],
    "list of": ["{o} = list({o}) + [{e}]"],
    "tail": ["{o} = {o}[-2:] + [{e}]"],
    "front": ["{o} = [{e}] + {o}"],
    "insert": ["{o}.insert(0, {e})"],
    "reversed": ["{o} = {o}[::-1] + [{e}]"],
    "item": ["{o} = {o} + [{e}]", "{o}[0] = {o}[0] * x"],
    "new": ["{o} = [{e}, {more}]"],
    "pop": ["{o} = {o} + [{e}, {more}]", "y = y + {o}.pop(0) * 0.1"],
}
HELD = {
    "name": ("out = []", "out", "out"),
    "first": ("out = [x * 1.0]", "out", "out"),
    "dict": ("d = {'k': [], 'j': x}", "d['k']", "d"),
    "object": ("box = Box([x])", "box.items", "box"),
    "tuple": ("a, b = [], [x]", "a", "(a, b)"),
}
LEFT = ("return", "break", "return behind", "end", "return in else", "changed in if")
NAMED = ("once", "before", "each turn", "in a branch")
USED = {
    "returned": "{whole}",
    "summed": "sum([q * (j + 1) for j, q in enumerate({o})], x * 0)",
    "stacked": "paddle.stack([x, *{o}])",
    "joined": "paddle.concat({o} + [x * 4])",
    "last": "([x] + {o})[-1] * len({o})",
}
LOOPS = {
    "while": ("while i < n:", []),
    "for": ("for i in range(n):", []),
    "True": ("while True:", ["if i >= n:", "    break"]),
    "four": ("for i in range(4):", ["if i >= n:", "    break"]),
}


def program(seed: int) -> str:
    """Return the source of one such function `f(x, n)`."""
    r = random.Random(seed)
    start, o, whole = HELD[r.choice(list(HELD))]
    item, more = (r.choice(["x * 2", "y * 3", "y * x", "paddle.sin(x)"]) for _ in range(2))
    change = [line.format(o=o, e=item, more=more) for line in REBUILT[r.choice(list(REBUILT))]]
    test = r.choice(["i > {}", "y.sum() > {}", "len({o}) > {}"]).format(r.choice([1, 2]), o=o)
    left, named, (head, first) = r.choice(LEFT), r.choice(NAMED), LOOPS[r.choice(list(LOOPS))]
    result = USED[r.choice(list(USED))].format(o=o, whole=whole)
    keep = {"each turn": [f"keep = {o}"], "in a branch": ["if i == 1:", f"    keep = {o}"]}.get(named, [])
    end = f"return {result}" if named == "once" else f"return {result}, keep"
    inside = {
        "return": [*change, *keep, f"if {test}:", f"    {end}"],
        "break": [*change, *keep, f"if {test}:", "    break"],
        "return behind": [*change, *keep],
        "end": [*keep, *change],
        "return in else": [*keep, f"if {test}:", *indented(change), f"    {end}", "else:", *indented(change)],
        "changed in if": [*keep, f"if {test}:", *indented(change)],
    }[left]
    turn = ["i = i + 1"] if head.startswith("while") else []
    lines = [start, "y = x * 1.0", "i = 0", f"keep = {o}"]
    lines += [head, *indented([*first, *inside, "y = y + 0.25 * x", *turn])]
    lines += ["if x.sum() > 3:", f"    {end}", *change] if left == "return behind" else []
    return "\n".join(["def f(x, n):", *indented([*lines, end])])


def indented(lines: list[str]) -> list[str]:
    """Return lines one step further in."""
    return ["    " + line for line in lines]
