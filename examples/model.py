"""A digit classifier that thinks twice: a second stage for the images of which the first is unsure."""

from __future__ import annotations

import dy2st as paddle
import dy2st.nn.functional as F

SURE = 0.9
TURNS = 3


class ThinkTwice(paddle.nn.Layer):
    """Classify 8x8 images; those it is unsure of are refined until it is sure of all, or `TURNS` turns are over.

    Returns the logits after all thinking, and those of the first stage, so that it can learn to be sure by itself.
    """

    def __init__(self) -> None:
        super().__init__()
        self.first = paddle.nn.Linear(64, 32)
        self.head = paddle.nn.Linear(32, 10)
        self.refine = paddle.nn.Linear(32 + 10, 32)
        self.register_buffer("refined", paddle.zeros([], "int64"))

    def forward(self, images):
        hidden = F.relu(self.first(images))
        first = logits = self.head(hidden)
        unsure = F.softmax(first).max(axis=1) < SURE
        if unsure.any():
            rows = paddle.nonzero(unsure).flatten()
            state, guess = hidden[rows], first[rows]
            turn = 0
            while turn < TURNS and (F.softmax(guess).max(axis=1) < SURE).any():
                thought = paddle.concat([state, F.softmax(guess)], axis=1)
                state = paddle.tanh(self.refine(thought))
                guess = guess + self.head(state)
                turn += 1
            logits = paddle.scatter(logits, rows, guess)
            self.refined += rows.shape[0]
        return logits, first
