"""A made language for recipes: each sentence has a tree, a text, and a probability that is known.

A noun has an article before it and adjectives behind it, a verb stands at the end of its clause, and all of them agree
with their noun in number and gender. Relative clauses nest, so that a verb may be far from its noun.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

ARTICLES, ADJECTIVES, NOUNS, VERBS = 3, 6, 12, 4
SYLLABLES = ("ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ru", "sa", "te")
CLAUSE, ADJECTIVE, OBJECT, PLURAL = 0.25, 0.4, 0.5, 0.4
DEEPEST = 2


@dataclass(frozen=True)
class Noun:
    """A noun with its article and adjectives (numbers of words), and perhaps a clause about it."""

    article: int
    adjectives: tuple[int, ...]
    word: int
    plural: bool
    clause: Clause | None

    @property
    def kind(self) -> int:
        """Say gender and number as one: 0 to 3."""
        return 2 * (self.word % 2) + self.plural


@dataclass(frozen=True)
class Clause:
    """What a noun does: a verb, with an object where it takes one."""

    verb: int
    object: Noun | None


@dataclass
class Language:
    """The words of a language by number; the first three are `PADDING`, `START` and `END`."""

    words: list[str] = field(default_factory=lambda: ["_", "<", "."])

    def __post_init__(self) -> None:
        self.number = {word: i for i, word in enumerate(self.words)}

    def numbers(self, words: list[str]) -> list[int]:
        """Return the numbers of the words of a sentence, with `END` behind them."""
        return [*(self.number[word] for word in words), END]


PADDING, START, END = 0, 1, 2
ENDINGS = ("o", "i", "a", "e")


def agreeing(noun: Noun) -> list[str]:
    """Return the words of a noun: all about it end alike."""
    end = ENDINGS[noun.kind]
    words = [f"l{SYLLABLES[noun.article]}{end}", f"n{SYLLABLES[noun.word]}{'s' if noun.plural else ''}"]
    words += [f"{SYLLABLES[a]}d{end}" for a in noun.adjectives]
    return words if noun.clause is None else [*words, "ke", *agreeing_clause(noun, noun.clause)]


def agreeing_clause(subject: Noun, clause: Clause) -> list[str]:
    """Return the words of what a noun does: the verb stands behind its object and agrees with the subject."""
    verb = f"{'v' if clause.object is None else 't'}{SYLLABLES[clause.verb]}{ENDINGS[subject.kind]}"
    return [verb] if clause.object is None else [*agreeing(clause.object), verb]


class Reader:
    """Reads a sentence from the left; `ValueError` where it is none."""

    def __init__(self, words: tuple[str, ...]):
        self.words, self.place = words, 0

    def word(self, begin: str, end: str = "") -> str:
        """Take the next word, which must have this beginning and one of these endings; return its last letter."""
        word = self.words[self.place] if self.place < len(self.words) else " "
        if not word.startswith(begin) or (end and word[-1] not in end):
            raise ValueError(f"{word} does not fit behind {' '.join(self.words[: self.place])}")
        self.place += 1
        return word[-1]

    def starts(self, *begins: str) -> bool:
        """Say whether the next word has one of these beginnings."""
        return self.place < len(self.words) and self.words[self.place].startswith(begins)

    def noun(self, depth: int = 0) -> str:
        """Read a noun and what stands about it; return how its words end."""
        end = self.word("l", "".join(ENDINGS))
        number, named = ENDINGS.index(end), self.words[self.place] if self.starts("n") else ""
        self.word("n")
        odd, plural = divmod(number, 2)
        if (named.endswith("s"), SYLLABLES.index(named[1:3]) % 2) != (bool(plural), odd):
            raise ValueError(f"{named} does not agree with its article")
        for _ in range(2):
            if self.starts(*(f"{s}d" for s in SYLLABLES)):
                self.word("", end)
        if depth < DEEPEST and self.starts("ke"):
            self.word("ke")
            self.clause(end, depth + 1)
        return end

    def clause(self, end: str, depth: int = 0) -> None:
        """Read what a noun with this ending does."""
        if self.starts("l"):
            self.noun(depth)
            self.word("t", end)
        else:
            self.word("v", end)


def grammatical(words: tuple[str, ...]) -> bool:
    """Say whether words are a sentence.

    >>> grammatical(("lbao", "nba", "vbao")), grammatical(("lbaa", "nba", "vbaa"))
    (True, False)
    """
    reader = Reader(words)
    try:
        reader.clause(reader.noun())
    except ValueError:
        return False
    return reader.place == len(words)


class Chances:
    """Draws choices and adds up the logarithms of their probabilities."""

    def __init__(self, rng: np.random.Generator):
        self.rng, self.logarithm = rng, 0.0

    def among(self, count: int) -> int:
        """Draw one of `count` things."""
        self.logarithm -= math.log(count)
        return int(self.rng.integers(count))

    def whether(self, chance: float) -> bool:
        """Draw whether something is so."""
        so = bool(self.rng.uniform() < chance)
        self.logarithm += math.log(chance if so else 1 - chance)
        return so


def noun(chances: Chances, depth: int = 0) -> Noun:
    """Draw a noun; clauses about nouns nest `DEEPEST` times at most."""
    article, adjectives = chances.among(ARTICLES), []
    while len(adjectives) < 2 and chances.whether(ADJECTIVE):
        adjectives.append(chances.among(ADJECTIVES))
    word, plural = chances.among(NOUNS), chances.whether(PLURAL)
    about = clause(chances, depth + 1) if depth < DEEPEST and chances.whether(CLAUSE) else None
    return Noun(article, tuple(adjectives), word, plural, about)


def clause(chances: Chances, depth: int = 0) -> Clause:
    """Draw what a noun does."""
    if chances.whether(OBJECT):
        return Clause(chances.among(VERBS), noun(chances, depth))
    return Clause(chances.among(VERBS), None)


@dataclass(frozen=True)
class Sentence:
    """The words of a sentence, and the logarithm of its probability: the words tell the tree."""

    words: tuple[str, ...]
    logarithm: float


def sentence(rng: np.random.Generator, longest: int = 24) -> Sentence:
    """Draw a sentence of at most `longest` words; the probability is that among sentences of all lengths."""
    while True:
        chances = Chances(rng)
        subject = noun(chances)
        words = [*agreeing(subject), *agreeing_clause(subject, clause(chances))]
        if len(words) <= longest:
            return Sentence(tuple(words), chances.logarithm)


def padded(rows: list[list[int]]) -> np.ndarray:
    """Return rows of numbers as one array, with `PADDING` behind the shorter ones."""
    out = np.full((len(rows), max(map(len, rows))), PADDING)
    for row, numbers in zip(out, rows, strict=True):
        row[: len(numbers)] = numbers
    return out


def language() -> Language:
    """Return the language with all its words."""
    words = [f"l{SYLLABLES[a]}{e}" for a in range(ARTICLES) for e in ENDINGS]
    words += [f"n{SYLLABLES[n]}{s}" for n in range(NOUNS) for s in ("", "s")]
    words += [f"{SYLLABLES[a]}d{e}" for a in range(ADJECTIVES) for e in ENDINGS] + ["ke"]
    words += [f"{kind}{SYLLABLES[v]}{e}" for kind in "vt" for v in range(VERBS) for e in ENDINGS]
    return Language(["_", "<", ".", *words])
