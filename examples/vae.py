"""A variational autoencoder of handwritten digits (Kingma and Welling, 2014): random numbers inside of the Program.

Run it with `python3 examples/vae.py`. The noise that the code is drawn with comes from the same seed in eager mode
and in the Program, so both learn the same. The images (8 x 8) come with scikit-learn.
"""

from __future__ import annotations

import argparse

import numpy as np
from learning import fit, report, training_step
from sklearn.datasets import load_digits

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st import nn

PIXELS, GREY = 64, " .:-=+*#%@"


class VAE(nn.Layer):
    """Logits of the pixels after a random code in between, with mean and log-variance of that code."""

    def __init__(self, code: int = 4, width: int = 64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(PIXELS, width), nn.Tanh(), nn.Linear(width, 2 * code))
        self.decoder = nn.Sequential(nn.Linear(code, width), nn.Tanh(), nn.Linear(width, PIXELS))

    def forward(self, pixels):
        mean, log_variance = self.encoder(pixels).chunk(2, axis=-1)
        code = mean
        if self.training:
            code = mean + paddle.exp(log_variance / 2) * paddle.randn(mean.shape)
        return self.decoder(code), mean, log_variance


def loss_of(model: VAE):
    """Return the function of pixels that is minus the evidence lower bound, a mean over images."""

    def loss(pixels):
        logits, mean, log_variance = model(pixels)
        missing = F.binary_cross_entropy_with_logits(logits, pixels, reduction="sum")
        divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
        return (missing + divergence) / pixels.shape[0]

    return loss


def images() -> np.ndarray:
    """Return 1797 images of 64 pixels, from 0 to 1."""
    return (load_digits().data / 16).astype("float32")


def train(steps: int, batch: int = 64, static: bool = True) -> tuple[VAE, list[float]]:
    """Return a trained autoencoder and the loss at each step."""
    paddle.seed(0)
    model, rng, pixels = VAE(), np.random.default_rng(0), images()
    adam = paddle.optimizer.Adam(0.005, parameters=model.parameters())
    batches = ([paddle.to_tensor(pixels[rng.integers(0, len(pixels), batch)])] for _ in range(steps))
    return model, fit(training_step(loss_of(model), adam, static), batches)


@paddle.no_grad()
def dream(model: VAE, count: int) -> np.ndarray:
    """Return `count` images [count, 8, 8] that the decoder makes of random codes."""
    codes = paddle.randn([count, model.decoder[0].weight.shape[0]])
    return F.sigmoid(model.decoder(codes)).reshape([count, 8, 8]).numpy()


def drawn(pictures: np.ndarray) -> str:
    """Return images beside each other as characters."""
    levels = (pictures * (len(GREY) - 1)).round().astype(int)
    return "\n".join("  ".join("".join(GREY[p] * 2 for p in image[row]) for image in levels) for row in range(8))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1500)
    model, losses = train(parser.parse_args().steps)
    report("vae", losses)
    model.eval()
    print(drawn(dream(model, 5)))


if __name__ == "__main__":
    main()
