"""From sequence to sequence with attention: GRU encoder and decoder, and a beam search in plain Python.

Run it with `python3 examples/seq2seq.py`. The task is to say a sequence of digits backwards and to stop. The beam
search is a `while` that ends when all its sentences have ended; under `to_static` it becomes a loop of the Program.
"""

from __future__ import annotations

import argparse

import numpy as np
from learning import fit, report, training_step

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st import nn

DIGITS, START, END = 10, 10, 11
SYMBOLS, PADDING = 12, -100
NEVER = -1e9


class Attention(nn.Layer):
    """Additive attention (Bahdanau et al., 2015): a mean of the memory, weighted by how well it fits a query."""

    def __init__(self, width: int):
        super().__init__()
        self.of_query, self.of_memory = nn.Linear(width, width), nn.Linear(width, width)
        self.score = nn.Linear(width, 1)

    def forward(self, query, memory):
        fits = self.score(paddle.tanh(self.of_query(query).unsqueeze(1) + self.of_memory(memory)))
        return (F.softmax(fits, axis=1) * memory).sum(axis=1)


class Seq2Seq(nn.Layer):
    """A network that reads digits [batch, time] and writes symbols, one at a time."""

    def __init__(self, width: int = 48):
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, width)
        self.encoder = nn.GRU(width, width)
        self.attention = Attention(width)
        self.cell = nn.GRUCell(2 * width, width)
        self.symbol = nn.Linear(width, SYMBOLS)

    def encode(self, source):
        memory, state = self.encoder(self.embedding(source))
        return memory, state[0]

    def decode(self, symbol, state, memory):
        """Return the scores of what comes after `symbol`, and the state."""
        seen = paddle.concat([self.embedding(symbol), self.attention(state, memory)], axis=1)
        _, state = self.cell(seen, state)
        return self.symbol(state), state

    def forward(self, source, target):
        """Return the scores [batch, time, symbol] of each symbol of the target after those before it."""
        memory, state = self.encode(source)
        scores = []
        for place in range(target.shape[1]):
            logits, state = self.decode(target[:, place], state, memory)
            scores.append(logits)
        return paddle.stack(scores, axis=1)

    def search(self, source, width: int, longest: int):
        """Return the likeliest symbols that a beam finds for one source [1, time], and their log-likelihood."""
        memory, state = self.encode(source)
        memory, state = memory.tile([width, 1, 1]), state.tile([width, 1])
        total = paddle.full([width], NEVER)  # all but one beam start as impossible: they would be the same
        total[0] = 0.0
        symbol = paddle.full([width], START, "int64")
        ended = paddle.zeros([width], "bool")
        sentences = paddle.full([width, longest], END, "int64")
        stay = paddle.full([SYMBOLS], NEVER)
        stay[END] = 0.0
        place = paddle.zeros([], "int64")
        while place < longest and not ended.all():
            logits, state = self.decode(symbol, state, memory)
            gain = paddle.where(ended.unsqueeze(1), stay, F.log_softmax(logits))
            total, best = paddle.topk((total.unsqueeze(1) + gain).flatten(), width)
            beam, symbol = best // SYMBOLS, best % SYMBOLS
            state, sentences = state[beam], sentences[beam]
            ended = paddle.logical_or(ended[beam], symbol == END)
            sentences[:, place] = symbol
            place += 1
        return sentences[0, :place], total[0]


def pairs(rng: np.random.Generator, count: int, longest: int = 6) -> list[paddle.Tensor]:
    """Return sources, what the decoder is fed, and what it should say: all of one length, which is random."""
    source = rng.integers(0, DIGITS, (count, rng.integers(2, longest + 1)))
    start, end = np.full((count, 1), START), np.full((count, 1), END)
    fed, said = np.hstack([start, source[:, ::-1]]), np.hstack([source[:, ::-1], end])
    return [paddle.to_tensor(source), paddle.to_tensor(fed), paddle.to_tensor(said)]


def train(steps: int, batch: int = 32, static: bool = True) -> tuple[Seq2Seq, list[float]]:
    """Return a trained network and the loss at each step."""
    paddle.seed(0)
    model, rng = Seq2Seq(), np.random.default_rng(0)
    adam = paddle.optimizer.Adam(0.01, parameters=model.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0))
    step = training_step(lambda source, fed, said: F.cross_entropy(model(source, fed), said), adam, static)
    return model, fit(step, (pairs(rng, batch) for _ in range(steps)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    model, losses = train(parser.parse_args().steps)
    report("seq2seq", losses)
    model.eval()
    search = paddle.jit.to_static(model.search, full_graph=True)
    for digits in ([3, 1, 4, 1, 5], [2, 7], [9, 8, 7, 6, 5, 4]):
        said, likelihood = search(paddle.to_tensor([digits]), 4, 10)
        answer = [symbol for symbol in said.tolist() if symbol != END]
        print(digits, "->", answer, f"log-likelihood {float(likelihood):.3f}")


if __name__ == "__main__":
    main()
