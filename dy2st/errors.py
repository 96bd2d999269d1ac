"""The error tree: every error that dy2st raises on its own behalf.

    Dy2stError
    |- ConversionError        source that cannot become a Program (async, no source text, ...)
    |- TraceError             a function that cannot be traced, with the user's line
    |  |- NeedsPythonValue    a symbolic value was asked for its Python value while tracing
    |  |- DebuggerCall        the function calls a debugger: it runs eagerly, so that there is something to look at
    |  `- StructureError      branches or loop iterations that cannot be joined
    |- InvalidProgram         the verifier's findings
    |- ProgramSyntaxError     the parser's findings
    |- FileFormatError        a file that is damaged, newer, or not ours (also a ValueError)
    |- AutodiffError          a derivative that does not exist (also a RuntimeError)
    |- Mismatch               `jit.verify` found that eager and static differ (also an AssertionError)
    |- CollectiveError        processes of a job that are not about to do the same (also a RuntimeError)
    `- MissingExtraError      an optional package that is not installed (also an ImportError)

What a user does wrong with values (shapes, dtypes, indices) raises Python's own ValueError, TypeError, IndexError.
"""

from __future__ import annotations

_LONGEST = 600
"""From how many letters on the middle of an error that quotes a file is left out."""


class Dy2stError(Exception):
    """Base of the errors that dy2st raises on its own behalf."""


class ConversionError(Dy2stError):
    """Source that cannot become a Program; says the place and what to write instead."""

    def __init__(self, message: str, *, file: str | None = None, line: int | None = None, hint: str | None = None):
        self.reason, self.file, self.line, self.hint = message, file, line, hint
        super().__init__(located(message, file, line, hint))


class TraceError(Dy2stError):
    """A function that cannot be traced into a Program."""

    def __init__(self, message: str, *, file: str | None = None, line: int | None = None, hint: str | None = None):
        self.reason, self.file, self.line, self.hint = message, file, line, hint
        super().__init__(located(message, file, line, hint))


class NeedsPythonValue(TraceError):
    """A symbolic value was asked for its Python value while tracing."""

    extents: frozenset[str] | None = None
    """The extents of inputs, as their symbols, that would tell the value; None where it is not known which."""


class NotDerivable(TraceError):
    """A Program whose derivative cannot be made; found before it runs."""


class DebuggerCall(TraceError):
    """A call of a debugger, which stops in the function as it was written."""


class StructureError(TraceError):
    """Values of two branches, or of two iterations of a loop, that cannot be joined."""


class InvalidProgram(Dy2stError):
    """A Program that breaks a rule of the IR."""


class ProgramSyntaxError(Dy2stError, ValueError):
    """Text that is not a Program."""


class FileFormatError(Dy2stError, ValueError):
    """A file that is damaged, of a newer version, or not a dy2st file; the text, which quotes it, is never long."""

    def __init__(self, message: str = ""):
        half = _LONGEST // 2
        super().__init__(message if len(message) <= _LONGEST else f"{message[:half]} ... {message[-half:]}")


class AutodiffError(Dy2stError, RuntimeError):
    """A derivative that does not exist or cannot be computed any more."""


class CollectiveError(Dy2stError, RuntimeError):
    """Processes of a job that are not about to do the same; all of them raise it."""


class Mismatch(Dy2stError, AssertionError):
    """A function that does not do the same eagerly and as a Program."""


class MissingExtraError(Dy2stError, ImportError):
    """An optional package that is not installed; the text names the extra to install."""

    def __init__(self, package: str, extra: str, purpose: str):
        super().__init__(
            f"{purpose} needs the package '{package}', which is not installed: pip install 'dy2st[{extra}]'"
        )


def located(message: str, file: str | None, line: int | None, hint: str | None = None) -> str:
    """Join a message with its place and what to write instead."""
    place = f"\n  at {file}:{line}" if file is not None else ""
    return message + place + (f"\n  {hint}" if hint else "")
