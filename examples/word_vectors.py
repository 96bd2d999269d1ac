"""word2vec finds out which words are about the same subject: skip-grams with negative samples, over 400 words.

Run it with `python3 dev.py demo word_vectors`. The text is made up: sentences about one of 40 subjects, of ten words
each that are as frequent as words of real texts are (Zipf's law), mixed with small words. The network is that of
`word2vec.py`, whose negative samples are drawn inside of the Program. The figure: how many of the three words nearest
to a word share its subject.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from training import Curves, Goal, Keeper, run, train
from word2vec import SkipGram, loss_of

import dy2st as paddle
from dy2st import nn

F = nn.functional
GOAL = Goal("neighbours of the same subject", 0.999, patience=20)
STEPS = 1500
BATCH, SUBJECTS, WORDS, SMALL, LENGTH, WINDOW = 512, 40, 10, 20, 12, 3
FREQUENCY = 1 / np.arange(1, WORDS + 1)
FREQUENCY /= FREQUENCY.sum()


def sentences(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return sentences as rows of numbers of words: ten for each subject, then the small words."""
    about = rng.integers(0, SUBJECTS, (count, 1))
    words = about * WORDS + rng.choice(WORDS, (count, LENGTH), p=FREQUENCY)
    small = SUBJECTS * WORDS + rng.integers(0, SMALL, (count, LENGTH))
    return np.where(rng.uniform(size=(count, LENGTH)) < 0.3, small, words)


def skip_grams(rng: np.random.Generator, count: int) -> list[paddle.Tensor]:
    """Return words of new sentences, and for each of them one that stands near it."""
    rows = sentences(rng, count)
    place, away = rng.integers(WINDOW, LENGTH - WINDOW, count), rng.integers(1, WINDOW + 1, count)
    near = place + np.where(rng.uniform(size=count) < 0.5, away, -away)
    each = np.arange(count)
    return [paddle.to_tensor(rows[each, place]), paddle.to_tensor(rows[each, near])]


def shared(vectors: np.ndarray) -> float:
    """Return the part of the three nearest words of all words with a subject that share it."""
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    likeness = vectors @ vectors.T
    np.fill_diagonal(likeness, -np.inf)
    nearest = np.argsort(-likeness[: SUBJECTS * WORDS], axis=1)[:, :3]
    return float((nearest // WORDS == np.arange(SUBJECTS * WORDS)[:, None] // WORDS).mean())


def recipe(folder: Path, steps: int, resume: bool = False) -> Curves:
    """Train for so many steps at most; return the curves."""
    paddle.seed(0)
    with paddle.utils.unique_name.guard():
        model = SkipGram(SUBJECTS * WORDS + SMALL, 32)
        adam = paddle.optimizer.Adam(0.01, parameters=model.parameters())
    counts = np.bincount(sentences(np.random.default_rng(0), 5000).ravel(), minlength=SUBJECTS * WORDS + SMALL)
    loss_of_pairs = loss_of(model, paddle.to_tensor(counts.astype("float32")))

    @paddle.jit.to_static
    def learn(centre, near):
        loss = loss_of_pairs(centre, near)
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    def step(number):
        return learn(*skip_grams(np.random.default_rng([1, number]), BATCH))

    keeper = Keeper({"model": model, "adam": adam}, GOAL, folder)
    if resume:
        keeper.resume()
    return train(step, lambda: shared(model.centre.weight.numpy()), keeper, steps, every=min(50, steps // 2))


if __name__ == "__main__":
    run(recipe, GOAL, "word_vectors", STEPS)
