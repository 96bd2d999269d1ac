"""Programs as text for people; `parser.py` reads the same text back, exactly.

    program main
    func main(%x: float32[N, 4], %p: bool[]) {
      %0: float32[N, 4] = tanh(%x)  # net.py:12 forward
      %y: float32[N, 4] = cond(%p, %0) {  # net.py:13 forward
        then(%a: float32[N, 4]) {
          %1: float32[N, 4] = neg(%a)  # net.py:14 forward
          return %1
        }
        else(%a: float32[N, 4]) {
          return %a
        }
      }
      return %y
    }
    files {
      net.py = "models/net.py"
    }

A block sees only its own names. Names come from `Value.name`, made unique within the block; the other values are
numbered through the function. Large constants stand in a section of their own at the end (`$0 = "base64"`); so do the
full names of source files that are longer than what the lines show.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re

from dy2st.ir.literals import Array, write_value
from dy2st.ir.location import Location
from dy2st.ir.program import Block, Operation, Program, Value

_WIDTH = 96
_PLAIN = re.compile(r"[^\W\d][\w.]*")
_WORD = re.compile(r'[^\s"]+')

ValueNames = dict[Value, str]


def to_text(program: Program, *, locations: bool = True) -> str:
    """Return the text of a Program; without `locations` it says nothing of source files."""
    printer = _Printer(locations)
    printer.line(0, f"program {_quoted(program.entry, _PLAIN)}")
    for name, block in program.functions.items():
        printer.block(0, f"func {_quoted(name, _PLAIN)}", block, value_names(block))
    printer.sections()
    return "\n".join(printer.lines) + "\n"


def block_to_text(block: Block, *, locations: bool = True) -> str:
    """Return the text of one block, for reading: large constants are left out, files go by their last name."""
    printer = _Printer(locations)
    printer.block(0, "block", block, value_names(block))
    return "\n".join(printer.lines) + "\n"


def operation_to_text(operation: Operation, names: ValueNames | None = None) -> str:
    """Return an operation as one line, without its location and what its sub-blocks hold."""
    head = _head(operation, names if names is not None else {}, _Constants())
    return head + (" {...}" if operation.blocks else "")


def value_names(block: Block) -> ValueNames:
    """Return the name of every value of a function's block and of the blocks inside it."""
    names: ValueNames = {}
    _name_block(block, names, set())
    return names


def label(operation: Operation, i: int) -> str:
    """Return what sub-block number `i` of an operation is called."""
    known = operation.op.block_names
    return known[i] if i < len(known) else f"block{i}"


def _name_block(block: Block, names: ValueNames, seen: set[Block], count: int = 0) -> int:
    """Name the values of a block; return how many numbers the function has used so far."""
    if block in seen:
        return count
    seen.add(block)
    taken: set[str] = set()

    def give(value: Value, count: int) -> int:
        if value in names:
            return count
        if not value.name:
            names[value] = str(count)
            return count + 1
        names[value] = _fresh(value.name, taken)
        return count

    for argument in block.arguments:
        count = give(argument, count)
    for operation in block.operations:
        for result in operation.results:
            count = give(result, count)
        for inner in operation.blocks:
            count = _name_block(inner, names, seen, count)
    return count


def _fresh(hint: str, taken: set[str]) -> str:
    base = re.sub(r"[^\w.]", "_", hint)
    base = base if _PLAIN.fullmatch(base) else f"_{base}"
    name, iteration = base, 0
    while name in taken:
        iteration += 1
        name = f"{base}_{iteration}"
    taken.add(name)
    return name


class _Constants:
    """The large arrays of a text, in the order in which they are met; the same elements are written once."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._references: dict[tuple[str, bytes], str] = {}

    def store(self, array: Array) -> str:
        key = array.dtype.name, hashlib.sha256(array.tobytes()).digest()
        reference = self._references.setdefault(key, f"${len(self.arrays)}")
        self.arrays[reference] = array
        return reference


class _Files:
    """Short names of source files, each for one file."""

    def __init__(self) -> None:
        self.short: dict[str, str] = {}

    def name(self, file: str) -> str:
        if file not in self.short:
            base = re.sub(r'[\s:"#=\ud800-\udfff]', "_", re.split(r"[\\/]", file)[-1]) or "_"
            taken, name, iteration = set(self.short.values()), base, 1
            while name in taken:
                iteration += 1
                name = f"{base}~{iteration}"
            self.short[file] = name
        return self.short[file]


class _Printer:
    def __init__(self, locations: bool):
        self.locations = locations
        self.lines: list[str] = []
        self.constants = _Constants()
        self.files = _Files()

    def line(self, depth: int, text: str, location: Location | None = None) -> None:
        if location is not None and self.locations:
            function = f" {_quoted(location.function, _WORD)}" if location.function else ""
            text = f"{text}  # {self.files.name(location.file)}:{location.line}{function}"
        self.lines.append("  " * depth + text)

    def block(self, depth: int, title: str, block: Block, names: ValueNames) -> None:
        arguments = ", ".join(_typed(v, names) for v in block.arguments)
        self.line(depth, f"{title}({arguments}) {{")
        for operation in block.operations:
            self.operation(depth + 1, operation, names)
        results = ", ".join(_used(v, names) for v in block.results)
        self.line(depth + 1, f"return {results}".rstrip())
        self.line(depth, "}")

    def operation(self, depth: int, operation: Operation, names: ValueNames) -> None:
        head = _head(operation, names, self.constants)
        if not operation.blocks:
            self.line(depth, head, operation.location)
            return
        self.line(depth, head + " {", operation.location)
        for i, block in enumerate(operation.blocks):
            self.block(depth + 1, label(operation, i), block, names)
        self.line(depth, "}")

    def sections(self) -> None:
        longer = {short: file for file, short in self.files.short.items() if short != file}
        if longer:
            self.line(0, "files {")
            for short, file in longer.items():
                self.line(1, f"{short} = {json.dumps(file)}")
            self.line(0, "}")
        if self.constants.arrays:
            self.line(0, "constants {")
            for reference, array in self.constants.arrays.items():
                self.line(1, f"{reference}: {array.dtype.name} =")
                data = base64.b64encode(array.tobytes()).decode()
                for at in range(0, max(len(data), 1), _WIDTH):
                    self.line(2, f'"{data[at : at + _WIDTH]}"')
            self.line(0, "}")


def _head(operation: Operation, names: ValueNames, constants: _Constants) -> str:
    results = ", ".join(_typed(v, names) for v in operation.results)
    operands = ", ".join(_used(v, names) for v in operation.operands)
    attributes = ", ".join(f"{k}={write_value(v, constants.store)}" for k, v in operation.attributes.items())
    called = f"{operation.name}({operands})" + (f" {{{attributes}}}" if attributes else "")
    return f"{results} = {called}" if results else called


def _typed(value: Value, names: ValueNames) -> str:
    return f"{_used(value, names)}: {value.type}"


def _used(value: Value, names: ValueNames) -> str:
    return f"%{names[value]}" if value in names else f"%?{value.name or ''}"


def _quoted(name: str, plain: re.Pattern[str]) -> str:
    return name if plain.fullmatch(name) else json.dumps(name)
