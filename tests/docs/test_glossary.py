"""The glossary's terms and the table "Where is ..." name files that are there."""

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
    paths = [path for path in re.findall(r"`([\w/.]+)`", answer) if path.endswith((".py", "/"))]
    assert len(paths) <= 2
    assert [path for path in paths if not (ROOT / "dy2st" / path).exists()] == []


def test_there_are_twenty_questions() -> None:
    assert len(WHERE) >= 20
