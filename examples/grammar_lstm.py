"""An LSTM language model of sentences of all lengths, nearly as good as the grammar that they were drawn from.

Run it with `python3 dev.py demo grammar_lstm`. The loop over a batch ends with its longest sentence, and the one that
makes up a sentence when the model ends it: neither is known while the Program is made. Because the probability of every
sentence is known, so is the best that a model can do: the figure is its perplexity in proportion to the grammar's own.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from grammar import END, START, language, padded, sentence
from training import Curves, Goal, Keeper, run, train

import dy2st as paddle
from dy2st import nn

F = nn.functional
GOAL = Goal("perplexity over that of the grammar", 1.02, highest=False, patience=20)
STEPS = 2500
BATCH, TEST = 64, 1000
LANGUAGE = language()


class Model(nn.Layer):
    """What comes after each word of sentences [batch, time], of which the first `lengths` count."""

    def __init__(self, words: int, width: int = 96):
        super().__init__()
        self.embedding, self.word = nn.Embedding(words, width), nn.Linear(width, words)
        self.cell = nn.LSTMCell(width, width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, sentences, lengths):
        """Return the sum of minus the log-likelihoods of all words that count, `END` among them."""
        batch = sentences.shape[0]
        word, total = paddle.full([batch], START, "int64"), paddle.zeros([])
        hidden = carried = paddle.zeros([batch, self.cell.hidden_size])
        for place in range(int(lengths.max())):
            out, (hidden, carried) = self.cell(self.embedding(word), (hidden, carried))
            word = sentences[:, place]
            loss = F.cross_entropy(self.word(self.dropout(out)), word, reduction="none")
            total = total + (loss * (place < lengths).astype("float32")).sum()
        return total

    @paddle.no_grad()
    def say(self, longest: int = 30):
        """Return a sentence that the model makes up, word by word, until it ends it."""
        word, said = paddle.full([1], START, "int64"), []
        hidden = carried = paddle.zeros([1, self.cell.hidden_size])
        while len(said) < longest and (word != END).all():
            out, (hidden, carried) = self.cell(self.embedding(word), (hidden, carried))
            word = paddle.multinomial(F.softmax(self.word(out)), 1).flatten()
            said.append(word)
        return paddle.concat(said)


def batch(rng: np.random.Generator, count: int) -> tuple[list[paddle.Tensor], float]:
    """Return sentences and their lengths (with `END`), and minus the log-likelihood of all of them."""
    drawn = [sentence(rng) for _ in range(count)]
    rows = [LANGUAGE.numbers(list(one.words)) for one in drawn]
    lengths = np.array([len(row) for row in rows])
    return [paddle.to_tensor(padded(rows)), paddle.to_tensor(lengths)], -sum(one.logarithm for one in drawn)


def recipe(folder: Path, steps: int, resume: bool = False) -> Curves:
    """Train for so many steps at most; return the curves."""
    paddle.seed(0)
    with paddle.utils.unique_name.guard():
        model = Model(len(LANGUAGE.words))
        rate = paddle.optimizer.lr.CosineAnnealingDecay(0.006, T_max=steps)
        adam = paddle.optimizer.Adam(rate, parameters=model.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0))

    @paddle.jit.to_static
    def learn(sentences, lengths):
        loss = model(sentences, lengths) / lengths.sum().astype("float32")
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    def step(number):
        loss = learn(*batch(np.random.default_rng([1, number]), BATCH)[0])
        rate.step()
        return loss

    (sentences, lengths), least = batch(np.random.default_rng(0), TEST)
    score = paddle.jit.to_static(model.forward)

    def measure():
        model.eval()
        with paddle.no_grad():
            more = float(score(sentences, lengths)) - least
        model.train()
        return float(np.exp(more / float(lengths.sum())))

    keeper = Keeper({"model": model, "adam": adam}, GOAL, folder)
    if resume:
        keeper.resume()
    curves = train(step, measure, keeper, steps, every=min(100, steps // 2))
    say = paddle.jit.to_static(model.say)
    for _ in range(3):
        print(" ".join(LANGUAGE.words[i] for i in say().tolist()))
    return curves


if __name__ == "__main__":
    run(recipe, GOAL, "grammar_lstm", STEPS)
