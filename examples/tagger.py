"""A tagger of sentences of different lengths: embedding, two bidirectional LSTM layers, a tag for each word.

Run it with `python3 examples/tagger.py`. The language is made up: the tag of a word says whether it occurred before and
whether it occurs again, so that both directions are needed. One Program serves every batch, as long as its longest
sentence may be.
"""

from __future__ import annotations

import argparse

import numpy as np
from learning import fit, report, training_step

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st import nn

WORDS, TAGS, PADDING = 6, 4, -100


class Tagger(nn.Layer):
    """Scores [sentence, place, tag] for words [sentence, place] of which the first `lengths` count."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, direction="bidirect", dropout=0.1)
        self.tag = nn.Linear(2 * width, TAGS)

    def forward(self, words, lengths):
        features, _ = self.lstm(self.embedding(words), sequence_length=lengths)
        return self.tag(features)


def sentences(rng: np.random.Generator, count: int, longest: int = 10) -> list[paddle.Tensor]:
    """Return words, lengths and tags (1: was here before, 2: comes again, 3: both); places past the end are padding."""
    lengths = rng.integers(2, longest + 1, count)
    words, tags = np.zeros((count, lengths.max()), "int64"), np.full((count, lengths.max()), PADDING)
    for row, length in enumerate(lengths):
        words[row, :length] = sentence = rng.integers(0, WORDS, length)
        for place, word in enumerate(sentence):
            tags[row, place] = (word in sentence[:place]) + 2 * (word in sentence[place + 1 :])
    return [paddle.to_tensor(words), paddle.to_tensor(lengths), paddle.to_tensor(tags)]


def train(steps: int, batch: int = 32, static: bool = True) -> tuple[Tagger, list[float]]:
    """Return a trained tagger and the loss at each step."""
    paddle.seed(0)
    model, rng = Tagger(), np.random.default_rng(0)
    adam = paddle.optimizer.AdamW(0.01, parameters=model.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0))

    def loss(words, lengths, tags):
        return F.cross_entropy(model(words, lengths), tags, ignore_index=PADDING)

    losses = fit(training_step(loss, adam, static), (sentences(rng, batch) for _ in range(steps)))
    return model, losses


@paddle.no_grad()
def accuracy(model: nn.Layer, count: int = 200) -> float:
    """Return the part of the words of new sentences that gets the right tag."""
    words, lengths, tags = sentences(np.random.default_rng(1), count)
    right = model(words, lengths).argmax(axis=-1) == tags
    return float(right.sum() / (tags != PADDING).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    model, losses = train(parser.parse_args().steps)
    report("tagger", losses)
    model.eval()
    print(f"right tags in new sentences: {accuracy(model):.3f}")


if __name__ == "__main__":
    main()
