"""A Transformer encoder-decoder that learns to sort, and writes its answer by greedy decoding in plain Python.

Run it with `python3 examples/translation.py`. In training the decoder sees the whole target behind a causal mask; to
write, `translate` is a `while` that ends when every sentence of the batch has ended. Under `to_static` both are
Programs for every batch and every length.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from learning import fit, report, training_step

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st import nn

DIGITS, START, END, SYMBOLS = 10, 10, 11, 12


class Embedding(nn.Layer):
    """Vectors of symbols, scaled, with sines of many wavelengths added that tell the place (Vaswani et al., 2017)."""

    def __init__(self, width: int, longest: int = 64):
        super().__init__()
        self.embedding, self.scale = nn.Embedding(SYMBOLS, width), math.sqrt(width)
        angle = np.arange(longest)[:, None] * np.exp(-np.arange(0, width, 2) * math.log(1e4) / width)
        places = np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(longest, width)
        self.register_buffer("places", paddle.to_tensor(places.astype("float32")), persistable=False)

    def forward(self, symbols):
        return self.embedding(symbols) * self.scale + self.places[: symbols.shape[1]]


class Translator(nn.Layer):
    """Scores [batch, time, symbol] of what comes after each symbol of `target`, given all of `source`."""

    def __init__(self, width: int = 32, heads: int = 4, layers: int = 2):
        super().__init__()
        self.source, self.target = Embedding(width), Embedding(width)
        self.transformer = nn.Transformer(width, heads, layers, layers, 2 * width, dropout=0.0, normalize_before=True)
        self.symbol = nn.Linear(width, SYMBOLS)

    def forward(self, source, target):
        return self.decode(target, self.transformer.encoder(self.source(source)))

    def decode(self, target, memory):
        causal = self.transformer.generate_square_subsequent_mask(target.shape[1])
        return self.symbol(self.transformer.decoder(self.target(target), memory, tgt_mask=causal))

    @paddle.no_grad()
    def translate(self, source, longest: int = 16):
        """Return the symbols written for each source, the likeliest one at each place; `END` fills up."""
        memory = self.transformer.encoder(self.source(source))
        written = paddle.full([source.shape[0], 1], START, "int64")
        ended = paddle.zeros([source.shape[0]], "bool")
        while written.shape[1] <= longest and not ended.all():
            likeliest = self.decode(written, memory)[:, -1].argmax(axis=-1)
            following = paddle.where(ended, paddle.full_like(likeliest, END), likeliest)
            written = paddle.concat([written, following.unsqueeze(1)], axis=1)
            ended = paddle.logical_or(ended, following == END)
        return written[:, 1:]


def pairs(rng: np.random.Generator, count: int, longest: int = 6) -> list[paddle.Tensor]:
    """Return sources, what the decoder is fed, and what it should write: the digits in order, then `END`."""
    source = rng.integers(0, DIGITS, (count, rng.integers(2, longest + 1)))
    start, end, order = np.full((count, 1), START), np.full((count, 1), END), np.sort(source)
    return [paddle.to_tensor(a) for a in (source, np.hstack([start, order]), np.hstack([order, end]))]


def train(steps: int, batch: int = 32, static: bool = True) -> tuple[Translator, list[float]]:
    """Return a trained network and the loss at each step."""
    paddle.seed(0)
    model, rng = Translator(), np.random.default_rng(0)
    rate = paddle.optimizer.lr.NoamDecay(d_model=32, warmup_steps=max(1, steps // 4), learning_rate=1.0)
    adam = paddle.optimizer.Adam(rate, beta2=0.98, parameters=model.parameters())
    step = training_step(lambda source, fed, said: F.cross_entropy(model(source, fed), said), adam, static)
    losses: list[float] = []
    for _ in range(steps):
        losses += fit(step, [pairs(rng, batch)])
        rate.step()
    return model, losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=500)
    model, losses = train(parser.parse_args().steps)
    report("translation", losses)
    model.eval()
    translate = paddle.jit.to_static(model.translate, full_graph=True)
    for digits in ([3, 1, 4, 1, 5], [7, 2], [9, 8, 7, 6, 5, 4]):
        print(digits, "->", [s for s in translate(paddle.to_tensor([digits])).tolist()[0] if s != END])


if __name__ == "__main__":
    main()
