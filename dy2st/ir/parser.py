"""Programs from their text (`printer.py` shows it).

    program   := "program" name function* ["files" "{" (short "=" string)* "}"]
                 ["constants" "{" ("$"n ":" dtype "=" string+)* "}"]
    function  := "func" name block
    block     := "(" [value ":" type {"," value ":" type}] ")" "{" operation* "return" [value {"," value}] "}"
    operation := [value ":" type {"," value ":" type} "="] op "(" [value {"," value}] ")"
                 ["{" attribute "=" literal {"," attribute "=" literal} "}"] ["{" (label block)+ "}"] [location]
    location  := "#" short ":" line [function]       at the end of the operation's (first) line
    value     := "%" (number | name)

Types are those of `types.py`, literals those of `literals.py`; any other `#` starts a comment. The parser refuses names
that a block does not define; all the other rules of the IR are the verifier's.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any

import numpy as np

from dy2st.ir.literals import Constants, read_value
from dy2st.ir.location import Location
from dy2st.ir.opdef import REGISTRY
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.reader import Reader
from dy2st.ir.type_text import DTYPES, read_type

MAX_DEPTH = 200
_NAME = re.compile(r"[^\W\d][\w.]*")
_VALUE = re.compile(r"%(?:[0-9]+|[^\W\d][\w.]*)")
_SHORT = re.compile(r'[^\s:"#=]+')
_LOCATION = re.compile(r'[ \t]*#[ \t]*([^\s:"#=]+):(-?[0-9]+)(?:[ \t]+("(?:[^"\\\n]|\\.)*"|[^\s"]+))?[ \t]*(?=\n|$)')
_SECTION = re.compile(r"^(files|constants) \{", re.MULTILINE)
_REFERENCE = re.compile(r"\$[0-9]+")
_RETURN = re.compile(r"return\b(?!\s*\()")
_ATTRIBUTE = re.compile(r"\{\s*[A-Za-z_]\w*\s*=")

Scope = dict[str, Value]


def parse(text: str) -> Program:
    """Return the Program that `text` writes; ProgramSyntaxError says the line and what was expected there."""
    return _Parser(text).program()


class _Parser:
    def __init__(self, text: str):
        self.reader = Reader(text)
        self.files: dict[str, str] = {}
        self.constants: Constants = {}
        self.end = len(text)

    def program(self) -> Program:
        reader = self.reader
        for found in _SECTION.finditer(reader.text):
            self.end = min(self.end, found.start())
            self.section(found)
        reader.at = 0
        reader.expect("program")
        entry = self.name()
        functions: dict[str, Block] = {}
        while reader.accept("func"):
            start = reader.at
            name = self.name()
            if name in functions:
                reader.fail(f"function {name} is there twice", start)
            functions[name] = self.block(0)
        reader.space()
        if reader.at < self.end:
            reader.fail("expected a function or the end of the Program")
        if entry not in functions:
            reader.fail(f"the entry {entry} is not among the functions")
        return Program(functions, entry)

    # ---- sections --------------------------------------------------------------------------------------------------
    def section(self, found: re.Match[str]) -> None:
        reader = self.reader
        reader.at = found.end()
        while not reader.accept("}"):
            if found.group(1) == "files":
                short = reader.take(_SHORT, "the short name of a file")
                reader.expect("=")
                self.files[short] = reader.string()
            else:
                self.constant()

    def constant(self) -> None:
        reader = self.reader
        reference = reader.take(_REFERENCE, "the name of a constant, such as $0")
        reader.expect(":")
        start = reader.at
        dtype = DTYPES.get(reader.take(_NAME, "a dtype"))
        if dtype is None:
            reader.fail("expected a dtype", start)
        reader.expect("=")
        pieces = [reader.string()]
        while reader.sees('"'):
            pieces.append(reader.string())
        try:
            data = base64.b64decode("".join(pieces), validate=True)
            self.constants[reference] = np.frombuffer(data, dtype.numpy)
        except (ValueError, binascii.Error) as error:
            reader.fail(f"constant {reference} is damaged ({error})", start)

    # ---- blocks ----------------------------------------------------------------------------------------------------
    def name(self) -> str:
        return self.reader.string() if self.reader.sees('"') else self.reader.take(_NAME, "a name")

    def block(self, depth: int) -> Block:
        reader, block = self.reader, Block()
        if depth > MAX_DEPTH:
            reader.fail(f"blocks are nested more than {MAX_DEPTH} deep")
        scope: Scope = {}
        reader.expect("(")
        if not reader.accept(")"):
            scope.update(self.definitions(block, scope))
            block.arguments.extend(scope.values())
            reader.expect(")")
        reader.expect("{")
        while not self.returns():
            block.operations.append(self.operation(block, scope, depth))
        if not reader.sees("}"):
            block.results = self.uses(scope)
        reader.expect("}")
        return block

    def returns(self) -> bool:
        """Return whether `return` comes next, and skip it; an op of that name would have its parenthesis."""
        return self.reader.match(_RETURN) is not None

    def definitions(self, block: Block, scope: Scope) -> Scope:
        """Read `%x: type, ...`; none of the names may be in `scope`."""
        reader, made = self.reader, Scope()
        while True:
            reader.space()
            start = reader.at
            written = reader.take(_VALUE, "a value, such as %x")
            if written in scope or written in made:
                reader.fail(f"{written} is defined twice in this block", start)
            reader.expect(":")
            name = None if written[1] in "0123456789" else written[1:]
            made[written] = Value(read_type(reader), block, None, name)
            if not reader.accept(","):
                return made

    def uses(self, scope: Scope) -> list[Value]:
        reader, found = self.reader, list[Value]()
        while True:
            reader.space()
            start = reader.at
            written = reader.take(_VALUE, "a value, such as %x")
            if written not in scope:
                reader.fail(f"{written} is not defined before this place in its block", start)
            found.append(scope[written])
            if not reader.accept(","):
                return found

    def operation(self, block: Block, scope: Scope, depth: int) -> Operation:
        reader = self.reader
        results = Scope()
        if reader.sees("%"):
            results = self.definitions(block, scope)
            reader.expect("=")
        reader.space()
        start = reader.at
        op = REGISTRY.get(reader.take(_NAME, "an op"))
        if op is None:
            reader.fail("no op has this name", start)
        reader.expect("(")
        operands: list[Value] = []
        if not reader.accept(")"):
            operands = self.uses(scope)
            reader.expect(")")
        attributes = self.attributes()
        blocks, location = self.blocks(depth)
        made = Operation(op, operands, attributes, blocks, location)
        made.results = list(results.values())
        for value in made.results:
            value.operation = made
        scope.update(results)
        return made

    def attributes(self) -> dict[str, Any]:
        reader, found, start = self.reader, dict[str, Any](), self.reader.at
        if not (reader.sees("{") and _ATTRIBUTE.match(reader.text, reader.at)):
            reader.at = start  # what was skipped may be the location
            return found
        reader.expect("{")
        while True:
            reader.space()
            start = reader.at
            name = reader.take(_NAME, "an attribute's name")
            if name in found:
                reader.fail(f"attribute {name} is there twice", start)
            reader.expect("=")
            found[name] = read_value(reader, self.constants)
            if not reader.accept(","):
                break
        reader.expect("}")
        return found

    def blocks(self, depth: int) -> tuple[list[Block], Location | None]:
        """Read the location and the sub-blocks, which stand around each other: `{  # location`, blocks, `}`."""
        reader = self.reader
        location = self.location()
        if location is not None or not reader.accept("{"):
            return [], location
        location = self.location()
        blocks: list[Block] = []
        while not reader.accept("}"):
            reader.take(_NAME, "the label of a block")
            blocks.append(self.block(depth + 1))
        return blocks, location

    def location(self) -> Location | None:
        found = _LOCATION.match(self.reader.text, self.reader.at)
        if found is None:
            return None
        self.reader.at = found.end()
        short, line, function = found.groups()
        if function is not None and function.startswith('"'):
            function = json.loads(function)
        return Location(self.files.get(short, short), int(line), function or "")
