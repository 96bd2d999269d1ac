"""The glossary's terms and the table "Where is ..." name files that are there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (?!term|---)(.+?) \| (.+?) \| `(.+?)` \| (.*?)\s*\|$", GLOSSARY, re.MULTILINE)


def test_every_row_is_read() -> None:
    assert len(ROWS) == sum(line.startswith("| ") and not line.startswith("| term") for line in GLOSSARY.splitlines())
    assert len(ROWS) > 40


def test_the_files_are_there() -> None:
    assert [file for _, _, file, _ in ROWS if not (ROOT / file).is_file()] == []


def test_a_term_stands_once() -> None:
    terms = [term for row in ROWS for term in row[0].split(", ")]
    assert sorted(terms) == sorted(set(terms))


ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SECTION = ARCHITECTURE.split("## Where is")[1].split("\n## ")[0]
WHERE = re.findall(r"^\| (?!\.\.\.)(.+?) \| (.*`.+) \|$", SECTION, re.MULTILINE)


@pytest.mark.parametrize(("question", "answer"), WHERE, ids=[question for question, _ in WHERE])
def test_a_question_is_answered_by_at_most_two_files_that_are_there(question: str, answer: str) -> None:
    paths = [path for path in re.findall(r"`([\w/.]+)`", answer) if path.endswith((".py", ".c", "/"))]
    assert len(paths) <= 2
    assert [path for path in paths if not (ROOT / "dy2st" / path).exists()] == []


def test_names_behind_a_file_stand_in_it() -> None:
    named = re.findall(r"`([\w/]+\.(?:py|c))` \(((?:`\w+`(?:, )?)+)\)", SECTION)
    assert len(named) > 20
    missing: list[str] = []
    for path, names in named:
        text = (ROOT / "dy2st" / path).read_text(encoding="utf-8")
        missing += [
            f"{path}: {n}" for n in re.findall(r"\w+", names) if not re.search(rf"(?:def|class|int) {n}\b", text)
        ]
    assert missing == []


def test_there_are_twenty_questions() -> None:
    assert len(WHERE) >= 20


OLD = (
    "(?:a|the) write log", "pull-backs?", "push-forwards?", "host calls?", "recognisers?", "loans?", "kept on disk",
    "in a hurry",
    "say whether", "(?:that|whose length) only the run (?:will tell|tells)", "turn by turn", "turns of a loop",
)  # fmt: skip
"""Words of which the glossary has another one: what stood for one thing under two names, or for two under one."""


def prose(path: Path) -> str:
    """Return the text of a page outside of code, or the docstrings of a module."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", text, flags=re.DOTALL)
    nodes = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))
    return "\n".join(re.sub(r"`[^`]*`", "", str(n.value.value)) for n in nodes)


def test_one_thing_has_one_name() -> None:
    old = re.compile(rf"\b(?:{'|'.join(OLD)})\b", re.IGNORECASE)
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "dy2st").rglob("*.py")]
    assert [f"{p.relative_to(ROOT)}: {found.group()}" for p in pages for found in old.finditer(prose(p))] == []
