"""What was found in a project as text, as JSON, and as a page that needs nothing from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from html import escape

from dy2st.project.check import Findings

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; vertical-align: top; padding: .2rem .6rem }
tr + tr td { border-top: 1px solid #ddd } code { font-family: ui-monospace, monospace; overflow-wrap: anywhere }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 } tr + tr td { border-color: #444 } }
"""  # noqa: E501 (a rule a line)
Row = tuple[str, str, str]


def to_text(found: Findings) -> str:
    """Return a report to read in a terminal; control characters in names of files are written as escapes."""
    lines = [*_summary(found)]
    for title, rows in _parts(found):
        lines += ["", f"{title}:"]
        lines += [f"  {_plain(first)}  {_plain(second)}" + (f"  ({_plain(third)})" if third else "")
                  for first, second, third in rows]  # fmt: skip
    return "\n".join(lines) + "\n"


def to_json(found: Findings) -> str:
    """Return all that was found as JSON."""
    known = asdict(found) | {"files": len(found.names), "files_with_all_names": found.files_with_all()}
    return json.dumps(known, indent=1) + "\n"


def to_html(found: Findings) -> str:
    """Return one page with tables; it loads nothing and runs no script."""
    parts = [f"<h1><code>{_html(found.project)}</code> under dy2st</h1>"]
    parts += [f"<p>{_html(line)}</p>" for line in _summary(found)]
    for title, rows in _parts(found):
        body = "".join(
            f"<tr><td><code>{_html(first)}</code></td><td>{_html(second)}</td><td>{_html(third)}</td></tr>"
            for first, second, third in rows
        )
        parts.append(f"<h2>{escape(title)}</h2><table>{body}</table>")
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{_html(found.project)}</title>'
    return f"{head}<style>{_STYLE}</style><body>{''.join(parts)}</body></html>\n"


def _summary(found: Findings) -> Iterator[str]:
    used = {name for names in found.names.values() for name in names}
    yield (
        f"{len(found.names)} files use {len(used)} of Paddle's names; {len(used) - len(found.missing)} of these names "
        f"are here, and all that {found.files_with_all()} of the files use."
    )
    functions = {(path, split.function) for path, several in found.splits.items() for split in several}
    yield f"{len(functions)} functions leave a Program at a line, as far as their source tells."


def _parts(found: Findings) -> Iterator[tuple[str, list[Row]]]:
    """Yield the parts that are not empty: a title, and rows of what, where or why, and more."""
    parts = {
        "Not here": [(name, _where(found, name), "") for name in sorted(found.missing)],
        "Otherwise than in Paddle": [(name, how, _where(found, name)) for name, how in sorted(found.otherwise.items())],
        "Functions that leave a Program": [
            (f"{path}:{split.line}", split.what, split.function)
            for path, several in found.splits.items()
            for split in several
        ],
        "Not read": [(path, reason, "") for path, reason in found.unread.items()],
        "Names by file": [
            (path, ", ".join(names), f"{sum(name in found.missing for name in names)} not here")
            for path, names in found.names.items()
        ],
    }
    yield from ((title, rows) for title, rows in parts.items() if rows)


def _where(found: Findings, name: str) -> str:
    places = [f"{path}:{names[name][0]}" for path, names in found.names.items() if name in names]
    return ", ".join(places[:3]) + (f" and {len(places) - 3} files more" if len(places) > 3 else "")


def _plain(text: str) -> str:
    """Return text that changes nothing in a terminal: what cannot be printed is an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def _html(text: str) -> str:
    return escape(_plain(text))
