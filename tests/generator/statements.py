"""Random functions of tensors: nested control flow, containers, objects, in-place writes, early exits.

Every function takes a vector `x`, a 0-D float `t`, an integer tensor `n`, a matrix `rows` and an object `box`; every
loop ends. Names that its text does not use are left out of its first and last lines.
"""

import re

from hypothesis import strategies as st

from tests.generator import idioms, operations
from tests.generator.choices import drawn, seeded
from tests.generator.expressions import NUMBERS, ONE_ELEMENT, SOME_ELEMENTS, VECTORS
from tests.generator.numbers import Numbers

STARTS = {
    "a": "x * 1.0", "b": "x * 2.0", "s": "t * 1.0", "r": "1.0", "out": "[]", "keep": "None", "d": "{}",
    "tag": "'start'", "seen": "{1}", "m": "0.0", "c": "paddle.to_tensor(1)", "e": "paddle.to_tensor(2)",
    "more": "[]", "p": "Point(x * 0.5, 1)", "q": "Point(x * 2.0, 2)", "g": "rows * 1.0", "y": "x * 1.0",
    "u": "(x * 2).astype('int64')", "h": "x > 0.3",
}  # fmt: skip
SCALE = ["def scale(v):", "    return v * s if s > 0.3 else v"]
BUMP = ["def bump(by):", "    nonlocal r", "    if s > 0.3:", "        r = r + by", "    return r"]
RISE = ["def rise(by):", "    global LEVEL", "    LEVEL = LEVEL + by", "    return LEVEL"]
FUNCTIONS = (*operations.VECTORS, *operations.NUMBERS, *operations.DRAWS)
ALONE = (*FUNCTIONS, *idioms.LISTS)
IDIOMS = (*(form for forms in idioms.SUBJECTS for form in forms), *operations.WRITES)

A_SEED = 1_000_000
"""So many programs has a seed of the command line."""


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


class Programs(Numbers):
    """Writes statements; each method gives its lines."""

    def block(self, depth: int, in_loop: bool = False) -> list[str]:
        lines = self.statement(depth, in_loop)
        while self.chance(2) and len(lines) < 12:
            lines += self.statement(depth, in_loop)
        return lines

    def body(self, depth: int, in_loop: bool = False) -> list[str]:
        return indented(self.block(depth, in_loop))

    def statement(self, depth: int, in_loop: bool) -> list[str]:
        if depth and self.chance(2):
            return self.compound(depth - 1, in_loop)
        return self.simple(in_loop)

    # ---- without a body --------------------------------------------------------------------------------------------
    def simple(self, in_loop: bool) -> list[str]:
        kinds = [self.assign, self.assign, self.augment, self.keep, self.contain, self.contain, self.write, self.call]
        kinds += [self.carry, self.carry, self.overlap, self.apply, self.apply, *[self.idiom] * 10]
        found = self.below(len(kinds) + 2)
        return kinds[found]() if found < len(kinds) else self.leave(in_loop)

    def assign(self) -> list[str]:
        v, s = self.one_of(VECTORS), self.one_of(NUMBERS)
        return [
            self.form(
                (
                    lambda: f"{v} = {self.vector(2)}",
                    lambda: f"{s} = {self.number(2)}",
                    lambda: f"box.state = {self.vector(1)}",
                    lambda: f"{v}, {s} = {self.vector(1)}, {self.number(1)}",
                    lambda: f"{s}, *rest = [{self.number(1)}, *out]",
                    lambda: f"(a, s), r = ({self.vector(1)}, {self.number(0)}), {self.number(0)}",
                    lambda: f"{s} = m = {self.number(1)}",
                )
            )
        ]

    def apply(self) -> list[str]:
        """Give a variable what a function of the library makes, or leave with that."""
        v, s, made = self.one_of(VECTORS), self.one_of(NUMBERS), self.called(self.functions, 1)
        return self.lines_of(
            f"{v} = {made}",
            f"{v} = {made}",
            f"{v} = {v} + {made} * 0.5",
            f"{s} = {self.called(operations.NUMBERS, 1)}",
            f"out.append({made})",
            f"box.state = {made}",
            f"if {self.test()}:\n    {v} = {made}",
            f"if {self.test()}:\n    return {made}, {v}",
        )

    def augment(self) -> list[str]:
        op = self.one_of(("+=", "-=", "*="))
        return self.lines_of(
            f"{self.one_of((*VECTORS, *NUMBERS, 'box.count'))} {op} {self.one_of(('1', '2', '0.5'))}",
            f"{self.one_of((*VECTORS, 'box.state'))} {op} {self.vector(0)}",
            f"box.net.calls {op} 1",
            f"if len(out) > 0:\n    out[-1] {op} {self.number(0)}",
            f"if 'p' in d:\n    d['p'] {op} {self.number(0)}",
        )

    def lines_of(self, *forms: str) -> list[str]:
        return self.one_of(forms).split("\n")

    def keep(self) -> list[str]:
        if self.chance(2):
            return ["tag = " + self.one_of(("'left'", "'right'", "''", "tag or 'none'"))]
        return [f"keep = {self.anything()}"]

    def contain(self) -> list[str]:
        """Change a list, a dict or a set."""
        v = self.one_of(VECTORS)
        return self.form(
            (
                lambda: f"out.append({self.vector(1)})",
                lambda: f"d[{self.key()}] = {self.vector(1)}",
                lambda: f"if len(out) > 0:\n    out[{self.one_of(('0', '-1'))}] = {self.vector(1)}",
                lambda: f"if len(out) > 1:\n    {v} = out.pop()",
                lambda: f"out = out + [{self.vector(1)}]",
                lambda: f"out.insert(0, {self.vector(1)})",
                lambda: f"out = [v * {self.factor} for v in out if {self.test('v')}]",
                lambda: f"out.extend([{self.vector(0)}, {self.vector(0)}])",
                lambda: "out = out[1:]",
                lambda: f"{v} = d.pop({self.key()}, {self.vector(0)})",
                lambda: f"d = {{k: v * {self.factor} for k, v in d.items()}}",
                lambda: f"seen.add({self.below(4)})",
                lambda: f"seen.discard({self.below(4)})",
                lambda: f"if len(out) > 0:\n    del out[{self.one_of(('0', '-1'))}]",
                lambda: "out.reverse()",
                lambda: f"box.log.append({self.number(0)})",
            )
        ).split("\n")

    def write(self) -> list[str]:
        """Change elements in place, through a name or through a view."""
        v = self.one_of(VECTORS)
        lines = [f"{v} = {v} * 1.0"]
        where = self.one_of((*ONE_ELEMENT, *SOME_ELEMENTS, f"{v} > 0.3", "n % 1"))
        made = self.form(
            (
                lambda: f"{v}[{where}] = {self.number(1)}",
                lambda: f"{v}[{where}] {self.one_of(('+=', '*='))} {self.number(0)}",
                lambda: f"part = {v}[{self.one_of((':1', '1:', '::2', '::-1'))}]\npart[0:1] = {self.number(0)}",
                lambda: f"{v}.{self.one_of(('add_', 'subtract_', 'multiply_'))}({self.vector(0)} * 0.5)",
                lambda: f"part = {v}.reshape([1, len(x)])\npart[0] = {self.vector(0)}",
                lambda: f"{v}.scale_(0.5)",
                lambda: f"out.append({v}.clone())\n{v}[0] = {self.number(0)}",
            )
        )
        return [*lines, *made.split("\n")]

    def overlap(self) -> list[str]:
        """Write where operands share memory."""
        a, b = VECTORS if self.chance(2) else VECTORS[::-1]
        made = self.one_of(operations.WRITES).format(a=a, b=b, s=self.number(0))
        return [f"{a} = {a} * 1.0", *made.split("\n")]

    def idiom(self, form: str = "") -> list[str]:
        """Write a statement of one of the subjects."""
        return (form or self.one_of(self.one_of(idioms.SUBJECTS))).format_map(Parts(self)).split("\n")

    def call(self) -> list[str]:
        v = self.one_of(VECTORS)
        return self.form(
            (
                lambda: f"print('at', {self.one_of(('box.count', 'len(out)', 'n', 'tag', 's'))})",
                lambda: f"r = bump({self.number(0)})",
                lambda: f"{v} = scale({v})",
                lambda: f"box.step({self.vector(0)})",
                lambda: f"{v}, {self.one_of(NUMBERS)} = pair({self.vector(0)}, n)",
                lambda: "print(f'{len(out)} {tag} {n}')",
                lambda: f"assert {self.test()}, 'checked {self.below(9)}'",
            )
        ).split("\n")

    def leave(self, in_loop: bool) -> list[str]:
        """Leave the loop or the function, mostly on a condition."""
        forms = [lambda: "break", lambda: "continue"] if in_loop else []
        forms += [
            lambda: f"return {self.one_of((*VECTORS, *NUMBERS, 'out', 'None', 'keep', '(a, s)', 'd', 'tag'))}",
            lambda: f"raise {self.one_of(('ValueError', 'KeyError'))}('stop {self.below(9)}')",
        ]
        made = [self.form(forms)]
        return made if self.chance(4) else [f"if {self.test()}:", *indented(made)]

    # ---- with a body -----------------------------------------------------------------------------------------------
    def compound(self, depth: int, in_loop: bool) -> list[str]:
        kinds = [
            self.if_,
            self.if_,
            self.while_,
            self.counting,
            self.for_,
            self.for_,
            self.match,
            self.try_,
            self.with_,
        ]
        return kinds[self.below(len(kinds))](depth, in_loop)

    def orelse(self, depth: int, in_loop: bool, every: int) -> list[str]:
        return ["else:", *self.body(depth, in_loop)] if self.chance(every) else []

    def if_(self, depth: int, in_loop: bool) -> list[str]:
        lines = [f"if {self.test()}:", *self.body(depth, in_loop)]
        if self.chance(4):
            lines += [f"elif {self.test()}:", *self.body(depth, in_loop)]
        return lines + self.orelse(depth, in_loop, 2)

    def while_(self, depth: int, in_loop: bool) -> list[str]:
        turns = f"turns{depth}"
        head = [f"{turns} = 0", f"while ({self.test()}) and {turns} < {2 + self.below(3)}:", f"    {turns} += 1"]
        return self.loop(depth, in_loop, head, turns)

    def counting(self, depth: int, in_loop: bool) -> list[str]:
        """A loop whose test reads a number that the loop carries: written first or last in its body."""
        head, counter, step = self.counted(depth)
        lines = self.loop(depth, in_loop, head, counter, orelse=False)
        if self.chance(3) or any("continue" in line for line in lines):  # else `continue` would turn for ever
            return [*lines[: len(head)], step, *lines[len(head) :]]
        return [*lines, step]

    def featured(self, k: int) -> list[str]:
        """A form that `k` names, where it may not have stood: so each form stands everywhere."""
        k, is_idiom = divmod(k, 2)
        if is_idiom:
            return self.around(self.idiom(IDIOMS[k % len(IDIOMS)]))
        return self.everywhere(FUNCTIONS[k % len(FUNCTIONS)])

    def everywhere(self, form: str) -> list[str]:
        """A loop that carries a form of an operation, has it in a branch, and is left with it."""
        v, w = VECTORS if self.chance(2) else VECTORS[::-1]
        form = f"{v} * 0.5 + {form}" if form in operations.NUMBERS else form
        first, second = (form.format(a=name, b=other, s="s") for name, other in ((v, w), (w, v)))
        left = self.lines_of(f"    {w} = {second}", f"    return {second}", f"    {w} = {second}\n    break")
        return ["for i9 in range(n):", *indented([f"{v} = {first}", f"if {v}.sum() > {self.limit}:", *left])]

    def alone(self, form: str) -> list[str]:
        """A form everywhere, kept small; that of a list on one which a loop makes."""
        if form not in idioms.LISTS:
            return self.everywhere(form if form in operations.NUMBERS else f"({form}).clip(-2.1, 2.1)")
        first, second = (form.format(a=v, b=w).split("\n") for v, w in (VECTORS, VECTORS[::-1]))
        inner = [*first, f"if a.sum() > {self.limit}:", *indented(second)]
        return [
            "counts = [1]",
            "for i8 in range(n):",
            "    out.append(x * 0.5)",
            "for i9 in range(n):",
            *indented(inner),
        ]

    def around(self, lines: list[str]) -> list[str]:
        """Put statements into a branch, a loop, or both."""
        branch = [f"if {self.test()}:", *indented(lines)]
        heads = ("for i9 in range(n):", "for v9 in rows:", "for i9 in range(3):")
        return branch if self.chance(3) else [self.one_of(heads), *indented(branch if self.chance(2) else lines)]

    def for_(self, depth: int, in_loop: bool) -> list[str]:
        i, v = f"i{depth}", f"v{depth}"
        head, count = (
            ([f"for {i} in range(n):"], i),
            ([f"for {i} in range(3):"], i),
            ([f"for {v} in rows:", f"    b = {v} * 1.0"], ""),
            ([f"for {i}, {v} in enumerate(x):", f"    s = s + {v} * {i}"], i),
            ([f"for {v}, w in zip(rows, x):", f"    a = {v} - w"], ""),
            ([f"for {i} in reversed(range(n)):"], i),
            ([f"for {v} in out:", f"    s = s + {v}[0]", "    if len(out) > 9:", "        break"], ""),
            ([f"for {i} in range(len(x)):", f"    s = s + x[{i}]"], i),
            ([f"for {i}, {v} in list(d.items()):", f"    b = {v} + 1.0"], ""),
            ([f"for {i} in (3, 1, 2):"], i),
            ([f"for {v} in twice(list(out)):", f"    a = a + {v}"], ""),
            ([f"for {v} in [w * 2.0 for w in out]:", f"    a = {v}"], ""),
            ([f"for {i} in range(5, n, -2):"], i),
        )[self.below(13)]
        return self.loop(depth, in_loop, head, count)

    def loop(self, depth: int, in_loop: bool, head: list[str], count: str, *, orelse: bool = True) -> list[str]:
        if count:
            self.loops.append(count)
        body = self.body(depth, True)
        if count:
            self.loops.pop()
        return [*head, *body, *(self.orelse(depth, in_loop, 4) if orelse else ())]

    def match(self, depth: int, in_loop: bool) -> list[str]:
        subject, first, second = (
            ("n", "0", "1 | 2"),
            ("tag", "'left'", "'right' | ''"),
            ("keep", "None", "(v, w)"),
            ("keep", "paddle.Tensor()", "str() as w"),
            ("(n > 1, tag)", "(True, _)", "(_, 'start')"),
            ("out", "[]", "[v, *_]"),
            ("d", "{'p': v}", "{'q': v}"),
            ("len(x)", "2", "w"),
        )[self.below(8)]
        guard = f" if {self.test()}" if self.chance(3) else ""
        lines = [f"case {first}{guard}:", *self.body(depth, in_loop), f"case {second}:", *self.body(depth, in_loop)]
        if second != "w":
            lines += ["case _:", *self.body(depth, in_loop)]
        return [f"match {subject}:", *indented(lines)]

    def try_(self, depth: int, in_loop: bool) -> list[str]:
        kind = self.one_of(("ValueError", "(ValueError, KeyError)", "Exception"))
        lines = ["try:", *self.body(depth, in_loop)]
        handled = not self.chance(4)
        if handled:
            lines += [f"except {kind}:", *self.body(depth, in_loop)]
            lines += self.orelse(depth, in_loop, 4)
        else:  # both in one `try` make large Programs: each site of the body is traced with both
            lines += ["finally:", *indented(self.assign())]
        return lines

    def with_(self, depth: int, in_loop: bool) -> list[str]:
        manager = self.one_of(("paddle.no_grad()", "box.counting()", "box.swallowing()"))
        return [f"with {manager}:", *self.body(depth, in_loop)]


class Parts(dict[str, str]):
    """What stands for the names in a form: variables are chosen once, expressions at each place."""

    def __init__(self, writer: Programs) -> None:
        a, s = (pair if writer.chance(2) else pair[::-1] for pair in (VECTORS, NUMBERS))
        super().__init__(a=a[0], b=a[1], s=s[0], r=s[1])
        self._writer = writer

    def __missing__(self, name: str) -> str:
        w = self._writer
        made = {
            "vector": lambda: w.vector(1),
            "number": lambda: w.number(1),
            "test": w.test,
            "key": w.key,
            "factor": lambda: w.factor,
            "limit": lambda: w.limit,
            "small": lambda: str(w.below(3)),
            "place": lambda: w.one_of(ONE_ELEMENT),
        }
        return made[name]()


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The text of `program(x, t, n, rows, box)`, of hypothesis's choices; helpers such as `half` stand beside it."""
    writer = Programs(drawn(draw))
    return text_of(writer.block(1 + writer.below(3)))


def program_of(seed: int) -> str:
    """Return the text of the program that a number names."""
    writer, k = Programs(seeded(seed), draws=True), seed % A_SEED
    if is_alone(seed):
        return text_of(writer.alone(ALONE[k]))
    featured = writer.featured(seed)
    body = [*writer.block(1 + writer.below(3)), *writer.idiom(idioms.EVERY_WAY[k // 8 % len(idioms.EVERY_WAY)])]
    return text_of([*featured, *body] if writer.chance(2) else [*body, *featured])


def is_alone(seed: int) -> bool:
    """Say whether a number names one of the first programs of a seed: each has one form alone, everywhere."""
    return seed % A_SEED < len(ALONE)


def text_of(body: list[str]) -> str:
    """Return a program of statements: the names that these use are set before and returned after them."""
    for name, lines in (("scale", SCALE), ("bump", BUMP), ("rise", RISE)):
        if _used(name, body):
            body = [*lines, *body]
    used = [name for name in STARTS if _used(name, body)] or ["a"]
    start = f"{', '.join(used)} = {', '.join(STARTS[name] for name in used)}"
    return "\n".join(["def program(x, t, n, rows, box):", *indented([start, *body, f"return {', '.join(used)}"]), ""])


def _used(name: str, lines: list[str]) -> bool:
    return any(re.search(rf"(?<![\w']){name}(?![\w'])", line) for line in lines)
