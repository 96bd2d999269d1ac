"""word2vec (Mikolov et al., 2013): skip-grams with negative samples, drawn inside of the Program.

Run it with `python3 examples/word2vec.py`. The text is made up of sentences about three subjects that share only a few
small words; words of one subject should end up near each other.
"""

from __future__ import annotations

import argparse

import numpy as np
from learning import fit, report, training_step

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st import nn

SUBJECTS = (
    ["boat", "sail", "wind", "wave", "harbour", "anchor", "mast", "tide"],
    ["oven", "bread", "flour", "yeast", "dough", "crust", "butter", "salt"],
    ["star", "orbit", "moon", "comet", "planet", "telescope", "galaxy", "night"],
)
SMALL = ["the", "a", "of", "and", "in"]
WORDS = [word for words in (*SUBJECTS, SMALL) for word in words]


class SkipGram(nn.Layer):
    """Two vectors a word: one as the centre, one as what stands near it."""

    def __init__(self, words: int, width: int = 16):
        super().__init__()
        spread = paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.5 / width, 0.5 / width))
        self.centre = nn.Embedding(words, width, weight_attr=spread)
        self.near = nn.Embedding(words, width, weight_attr=spread)

    def forward(self, centre, near):
        """Return how well centres [batch] go with words [batch, candidate] near them, as logits."""
        return paddle.matmul(self.near(near), self.centre(centre).unsqueeze(2)).squeeze(2)


def loss_of(model: SkipGram, frequency: paddle.Tensor, negatives: int = 5):
    """Return the loss of true pairs against `negatives` words each, drawn by frequency to the power of 3/4."""
    chances = frequency**0.75

    def loss(centre, near):
        drawn = paddle.multinomial(chances, centre.shape[0] * negatives, replacement=True)
        logits = model(centre, paddle.concat([near.unsqueeze(1), drawn.reshape([-1, negatives])], axis=1))
        return -(F.log_sigmoid(logits[:, 0]) + F.log_sigmoid(-logits[:, 1:]).sum(axis=1)).mean()

    return loss


def text(rng: np.random.Generator, sentences: int) -> list[list[int]]:
    """Return sentences of numbers of words; each keeps to one subject."""
    made = []
    for _ in range(sentences):
        about, small = SUBJECTS[rng.integers(len(SUBJECTS))], rng.uniform(size=8) < 0.3
        made.append([WORDS.index(str(rng.choice(SMALL if s else about))) for s in small])
    return made


def skip_grams(sentences: list[list[int]], window: int = 2) -> np.ndarray:
    """Return each word with each of its neighbours, as rows (centre, near)."""
    return np.array(
        [
            (word, sentence[j])
            for sentence in sentences
            for i, word in enumerate(sentence)
            for j in range(max(0, i - window), min(len(sentence), i + window + 1))
            if i != j
        ]
    )


def train(steps: int, batch: int = 128, static: bool = True) -> tuple[SkipGram, list[float]]:
    """Return a trained model and the loss at each step."""
    paddle.seed(0)
    rng = np.random.default_rng(0)
    pairs = skip_grams(text(rng, 300))
    model = SkipGram(len(WORDS))
    frequency = np.bincount(pairs[:, 0], minlength=len(WORDS)).astype("float32")
    adam = paddle.optimizer.Adam(0.01, parameters=model.parameters(), lazy_mode=True)
    step = training_step(loss_of(model, paddle.to_tensor(frequency)), adam, static)
    rows = (pairs[rng.integers(0, len(pairs), batch)] for _ in range(steps))
    return model, fit(step, ([paddle.to_tensor(chosen[:, 0]), paddle.to_tensor(chosen[:, 1])] for chosen in rows))


@paddle.no_grad()
def nearest(model: SkipGram, word: str, count: int = 4) -> list[str]:
    """Return the words whose vectors point most nearly the same way."""
    vectors = F.normalize(model.centre.weight, axis=1)
    _, found = paddle.topk(vectors @ vectors[WORDS.index(word)], count + 1)
    return [WORDS[i] for i in found.tolist() if WORDS[i] != word][:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=800)
    model, losses = train(parser.parse_args().steps)
    report("word2vec", losses)
    for word in ("boat", "bread", "moon"):
        print(f"{word}: {', '.join(nearest(model, word))}")


if __name__ == "__main__":
    main()
