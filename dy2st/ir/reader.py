"""A cursor over Program text: what the parsers of types, literals and Programs read with."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from dy2st.errors import ProgramSyntaxError

_SPACE = re.compile(r"(?:\s|#[^\n]*)*")
_STRING = json.JSONDecoder()


class Reader:
    """Read a text from left to right; white space and comments (`#` to the end of the line) are skipped."""

    __slots__ = ("at", "text")

    def __init__(self, text: str, at: int = 0):
        self.text, self.at = text, at

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        """Raise ProgramSyntaxError with the line, the column and a caret."""
        at = self.at if at is None else at
        start = self.text.rfind("\n", 0, at) + 1
        end = self.text.find("\n", at)
        line = self.text[start : len(self.text) if end < 0 else end]
        number, column = self.text.count("\n", 0, at) + 1, at - start
        shown, left = line[max(0, column - 100) : column + 100], min(column, 100)
        raise ProgramSyntaxError(f"{message}, line {number}, column {column + 1}\n  {shown}\n  {' ' * left}^")

    def space(self) -> None:
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def sees(self, token: str) -> bool:
        """Return whether `token` comes next; move to it."""
        self.space()
        return self.text.startswith(token, self.at)

    def accept(self, token: str) -> bool:
        """Skip `token` when it comes next."""
        found = self.sees(token)
        if found:
            self.at += len(token)
        return found

    def expect(self, token: str) -> None:
        if not self.accept(token):
            self.fail(f"expected {token!r}")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Skip what `pattern` matches here, if it does."""
        self.space()
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def take(self, pattern: re.Pattern[str], what: str) -> str:
        """Return and skip what `pattern` matches; `what` names it for the error."""
        found = self.match(pattern)
        if found is None:
            self.fail(f"expected {what}")
        return found.group()

    def string(self) -> str:
        """Read a string in double quotes with JSON's escapes."""
        if not self.sees('"'):
            self.fail("expected a string in double quotes")
        return self.json()

    def json(self) -> Any:
        """Read one JSON string, number or word."""
        self.space()
        if self.text[self.at : self.at + 1] in ("[", "{", ""):
            self.fail("expected a string, a number or a word")
        try:
            value, self.at = _STRING.raw_decode(self.text, self.at)
        except ValueError as error:
            self.fail(f"not a string, a number or a word ({error})")
        return value

    @property
    def done(self) -> bool:
        self.space()
        return self.at == len(self.text)
