"""Changes of a Program in a file that leave its form as it is: types, operands, attributes, ops, results.

Each is one that a careful forger makes: what a file's checksums and its form say about it is right again afterwards.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Json = Any
_DTYPES = (
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)
_EXTENTS = ("0", "1", "2", "4", "16", "1000", "N", "M", "n0", "n1", "2*N", "N + 1", "floordiv(N, 2)", "bcast(M, N)")
_NUMBERS = (0, 1, -1, 2, 3, 7, 16, 17, 1 << 20, 1 << 31, 1 << 40, 1 << 61, -(1 << 40), (1 << 63) - 1, 1 << 63)


def mutated(data: Json, others: list[Json], rng: random.Random) -> Json:
    """Return a Program with one to four changes; `others` are Programs from which parts are taken."""
    data = copied(data)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        rng.choices(_CHANGES, _WEIGHTS)[0](data, others, rng)
    return data


def copied(data: Json) -> Json:
    """Return a copy of what JSON holds: several times as fast as `copy.deepcopy`, which is asked for each Program."""
    if isinstance(data, dict):
        return {key: copied(value) for key, value in data.items()}
    return [*map(copied, data)] if isinstance(data, list) else data


def blocks(data: Json) -> list[Json]:
    """Return all blocks of a Program."""
    found: list[Json] = []

    def add(block: Json) -> None:
        found.append(block)
        for operation in block["operations"]:
            for inner in operation["blocks"]:
                add(inner)

    for block in data["functions"].values():
        add(block)
    return found


def _operation(data: Json, rng: random.Random) -> tuple[Json, Json] | None:
    found = [(b, o) for b in blocks(data) for o in b["operations"]]
    return rng.choice(found) if found else None


def _values(data: Json) -> list[Json]:
    found: list[Json] = []
    for block in blocks(data):
        found += block["arguments"]
        for operation in block["operations"]:
            found += operation["results"]
    return found


# ---- types ---------------------------------------------------------------------------------------------------------
def _another_type(text: str, values: list[Json], rng: random.Random) -> str:
    choice = rng.random()
    if choice < 0.55 and "[" in text:  # another extent
        head, _, rest = text.partition("[")
        inside, _, tail = rest.partition("]")
        parts = [p for p in inside.split(", ") if p] if "(" not in inside else [inside]
        if parts:
            at = rng.randrange(len(parts))
            parts[at] = rng.choice([*_EXTENTS, *parts, "None"] if "<" in text else [*_EXTENTS, *parts])
            return f"{head}[{', '.join(parts)}]{tail}"
    if choice < 0.7:
        for dtype in _DTYPES:
            if f"{dtype}[" in text:
                return text.replace(f"{dtype}[", f"{rng.choice(_DTYPES)}[", 1)
    if choice < 0.9:
        return rng.choice(values)[1]
    return rng.choice(
        (f"list<{text}>", f"tuple<{text}>", f"variant<unset | {text}>", "int", "float", "bool", "int(N)", "int(4)",
         "tuple<int, int, int>", "list<tuple<int, int, int>>", "float64[16]", "none")
    )  # fmt: skip


def _type(data: Json, others: list[Json], rng: random.Random) -> None:
    values = _values(data)
    if values:
        value = rng.choice(values)
        value[1] = _another_type(value[1], values, rng)


def _types_everywhere(data: Json, others: list[Json], rng: random.Random) -> None:
    """Rename a type wherever it stands: then all that declares it agrees."""
    values = _values(data)
    if values:
        old = rng.choice(values)[1]
        new = _another_type(old, values, rng)
        for value in values:
            if value[1] == old:
                value[1] = new
        for block in blocks(data):
            for operation in block["operations"]:
                _retype(operation["attributes"], old, new)


def _claim(data: Json, others: list[Json], rng: random.Random) -> None:
    """Say something else of an extent from an operation on: what is computed from it declares the same."""
    block = rng.choice(blocks(data))
    values = [(i, r[1]) for i, o in enumerate(block["operations"]) for r in o["results"] if "[" in r[1]]
    if not values:
        return
    start, old = rng.choice(values)
    inside = old.partition("[")[2].partition("]")[0]
    extent = rng.choice([e for e in inside.split(", ") if e] or ["N"]) if "(" not in inside else inside
    new = rng.choice(_EXTENTS)

    def renamed(text: str) -> str:
        head, bracket, rest = text.partition("[")
        parts, close, tail = rest.partition("]")
        return f"{head}{bracket}{', '.join(new if p == extent else p for p in parts.split(', '))}{close}{tail}"

    def change(operation: Json) -> None:
        for result in operation["results"]:
            result[1] = renamed(result[1])
        for inner in operation["blocks"]:
            for argument in inner["arguments"]:
                argument[1] = renamed(argument[1])
            for below in inner["operations"]:
                change(below)

    for operation in block["operations"][start:]:
        change(operation)


def _retype(attribute: Json, old: str, new: str) -> None:
    if isinstance(attribute, dict):
        if attribute.get("type") == old:
            attribute["type"] = new
        for inner in attribute.values():
            _retype(inner, old, new)
    elif isinstance(attribute, list):
        for inner in attribute:
            _retype(inner, old, new)


def _swapped_types(data: Json, others: list[Json], rng: random.Random) -> None:
    values = _values(data)
    if len(values) > 1:
        a, b = rng.sample(values, 2)
        a[1], b[1] = b[1], a[1]


# ---- values --------------------------------------------------------------------------------------------------------
def _count(block: Json, before: Json | None = None) -> int:
    count = len(block["arguments"])
    for operation in block["operations"]:
        if operation is before:
            break
        count += len(operation["results"])
    return count


def _operand(data: Json, others: list[Json], rng: random.Random) -> None:
    found = _operation(data, rng)
    if found is not None and found[1]["operands"]:
        block, operation = found
        operation["operands"][rng.randrange(len(operation["operands"]))] = rng.randrange(
            max(1, _count(block, operation))
        )


def _same_kind_operand(data: Json, others: list[Json], rng: random.Random) -> None:
    """Exchange an operand for one whose type differs in extents only."""
    found = _operation(data, rng)
    if found is None or not found[1]["operands"]:
        return
    block, operation = found
    values = [*block["arguments"]]
    for other in block["operations"]:
        if other is operation:
            break
        values += other["results"]
    at = rng.randrange(len(operation["operands"]))
    number = operation["operands"][at]
    if number < len(values):
        head = values[number][1].partition("[")[0]
        same = [i for i, v in enumerate(values) if v[1].partition("[")[0] == head]
        operation["operands"][at] = rng.choice(same or [number])


def _exchanged(data: Json, others: list[Json], rng: random.Random) -> None:
    found = _operation(data, rng)
    if found is not None and len(found[1]["operands"]) > 1:
        operands = found[1]["operands"]
        i, j = rng.sample(range(len(operands)), 2)
        operands[i], operands[j] = operands[j], operands[i]


def _another_count(data: Json, others: list[Json], rng: random.Random) -> None:
    found = _operation(data, rng)
    if found is not None:
        operands = found[1]["operands"]
        if operands and rng.random() < 0.5:
            del operands[rng.randrange(len(operands))]
        else:
            operands.append(rng.randrange(max(1, _count(*found))))


def _results(data: Json, others: list[Json], rng: random.Random) -> None:
    block = rng.choice(blocks(data))
    if block["results"]:
        block["results"][rng.randrange(len(block["results"]))] = rng.randrange(max(1, _count(block)))


# ---- attributes and ops --------------------------------------------------------------------------------------------
def _another_attribute(value: Json, rng: random.Random) -> Json:
    if rng.random() < 0.08:
        return rng.choice((None, True, 0, 1, -1, "x", 0.5, [], [0], [None], {"dtype": "int8"}, {"float": "nan"}))
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((value + 1, value - 1, -value, *_NUMBERS))
    if isinstance(value, float):
        return rng.choice((0.0, -1.0, 1e300, 1e-300))
    if isinstance(value, list):
        items = [*value]
        if items and rng.random() < 0.7:
            at = rng.randrange(len(items))
            items[at] = _another_attribute(items[at], rng)
        elif items and rng.random() < 0.5:
            del items[rng.randrange(len(items))]
        else:
            items.append(rng.choice([*items, 0, 1, None]))
        return items
    if isinstance(value, dict) and "dtype" in value:
        return {"dtype": rng.choice(_DTYPES)}
    if isinstance(value, dict) and "type" in value:
        return {"type": _another_type(value["type"], [[None, value["type"]]], rng)}
    if isinstance(value, str):
        return rng.choice((value + "x", "", "?", "add", "assign", "forward", "ValueError"))
    return rng.choice((None, 0, 1, 2)) if value is None else value


def _attribute(data: Json, others: list[Json], rng: random.Random) -> None:
    found = [(o, name) for b in blocks(data) for o in b["operations"] for name in o["attributes"]]
    if found:
        operation, name = rng.choice(found)
        operation["attributes"][name] = _another_attribute(operation["attributes"][name], rng)


def _op(data: Json, others: list[Json], rng: random.Random) -> None:
    found, other = _operation(data, rng), _operation(rng.choice(others), rng)
    if found is not None and other is not None:
        found[1]["op"] = other[1]["op"]
        if rng.random() < 0.8:
            found[1]["attributes"] = copied(other[1]["attributes"])
        if rng.random() < 0.3:
            types = [r[1] for r in other[1]["results"]]
            for result, t in zip(found[1]["results"], types, strict=False):
                result[1] = t


def _body(data: Json, others: list[Json], rng: random.Random) -> None:
    """Exchange the blocks of two operations, or take one twice."""
    found = [o for b in blocks(data) for o in b["operations"] if o["blocks"]]
    if found:
        a, b = rng.choice(found), rng.choice(found)
        i, j = rng.randrange(len(a["blocks"])), rng.randrange(len(b["blocks"]))
        a["blocks"][i] = copied(b["blocks"][j])


_Change = Callable[[Json, list[Json], random.Random], None]
_TABLE: list[tuple[_Change, int]] = [
    (_type, 3), (_types_everywhere, 4), (_claim, 6), (_swapped_types, 1), (_operand, 3), (_same_kind_operand, 3),
    (_exchanged, 2), (_another_count, 1), (_results, 2), (_attribute, 6), (_op, 2), (_body, 1),
]  # fmt: skip
_CHANGES = [change for change, _ in _TABLE]
_WEIGHTS = [weight for _, weight in _TABLE]
