"""A very small BERT (Devlin et al., 2019): an encoder that learns to fill in masked symbols of padded sequences.

Run it with `python3 examples/bert.py`. The language: a sequence counts up by a number of its own, modulo 20, so that
what is masked can be told from its neighbours on both sides.
"""

from __future__ import annotations

import argparse

import numpy as np
from learning import fit, report, training_step

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st import nn

SYMBOLS, PADDING, MASK = 20, 20, 21
UNMASKED = -100


class Bert(nn.Layer):
    """An encoder of symbols [batch, time]: a vector for each place, and one for the whole sequence."""

    def __init__(self, width: int = 32, heads: int = 2, layers: int = 2, longest: int = 32):
        super().__init__()
        self.symbol = nn.Embedding(SYMBOLS + 2, width, padding_idx=PADDING)
        self.place = nn.Embedding(longest, width)
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(0.05)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.05, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.pooler = nn.Linear(width, width)

    def forward(self, symbols):
        places = paddle.arange(symbols.shape[1])
        vectors = self.dropout(self.norm(self.symbol(symbols) + self.place(places)))
        visible = (symbols != PADDING).unsqueeze([1, 2])
        vectors = self.encoder(vectors, visible)
        return vectors, paddle.tanh(self.pooler(vectors[:, 0]))


class MaskedLanguageModel(nn.Layer):
    """Scores [batch, time, symbol]; the embedding of the encoder, transposed, is their last matrix."""

    def __init__(self, bert: Bert, width: int = 32):
        super().__init__()
        self.bert = bert
        self.transform, self.norm = nn.Linear(width, width), nn.LayerNorm(width)
        self.bias = self.create_parameter([SYMBOLS + 2], is_bias=True)

    def forward(self, symbols):
        vectors, _ = self.bert(symbols)
        hidden = self.norm(F.gelu(self.transform(vectors)))
        return paddle.matmul(hidden, self.bert.symbol.weight, transpose_y=True) + self.bias


def sequences(rng: np.random.Generator, count: int, longest: int = 12) -> list[paddle.Tensor]:
    """Return sequences with masks and padding, and the symbols behind the masks (`UNMASKED` elsewhere)."""
    lengths = rng.integers(5, longest + 1, count)[:, None]
    start, step = rng.integers(0, SYMBOLS, (count, 1)), rng.integers(1, 4, (count, 1))
    place = np.arange(lengths.max())
    true = (start + step * place) % SYMBOLS
    masked = (rng.uniform(size=true.shape) < 0.2) & (place < lengths)
    seen = np.where(masked, MASK, np.where(place < lengths, true, PADDING))
    return [paddle.to_tensor(seen), paddle.to_tensor(np.where(masked, true, UNMASKED))]


def train(steps: int, batch: int = 32, static: bool = True) -> tuple[MaskedLanguageModel, list[float]]:
    """Return a trained model and the loss at each step; biases and norms do not decay."""
    paddle.seed(0)
    model, rng = MaskedLanguageModel(Bert()), np.random.default_rng(0)
    decays = {p.name for p in model.parameters() if p.ndim > 1}
    adam = paddle.optimizer.AdamW(
        0.002, parameters=model.parameters(), weight_decay=0.01, apply_decay_param_fun=decays.__contains__
    )

    def loss(seen, hidden):
        return F.cross_entropy(model(seen), hidden, ignore_index=UNMASKED)

    return model, fit(training_step(loss, adam, static), (sequences(rng, batch) for _ in range(steps)))


@paddle.no_grad()
def accuracy(model: nn.Layer, count: int = 200) -> float:
    """Return the part of the masked symbols of new sequences that the model finds."""
    seen, hidden = sequences(np.random.default_rng(1), count)
    return float((model(seen).argmax(axis=-1) == hidden).sum() / (hidden != UNMASKED).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    model, losses = train(parser.parse_args().steps)
    report("bert", losses)
    model.eval()
    print(f"masked symbols found: {accuracy(model):.3f}")


if __name__ == "__main__":
    main()
