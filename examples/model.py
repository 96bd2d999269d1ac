"""A digit classifier that thinks twice: a second stage for the images of which the first is unsure."""

from __future__ import annotations

import dy2st as paddle
import dy2st.nn.functional as F


class ThinkTwice(paddle.nn.Layer):
    """Classify 8x8 images; the unsure ones are refined until they are sure or three turns are over."""

    def __init__(self) -> None:
        super().__init__()
        self.first = paddle.nn.Linear(64, 32)
        self.head = paddle.nn.Linear(32, 10)
        self.refine = paddle.nn.Linear(32 + 10, 32)
        self.register_buffer("refined", paddle.zeros([], "int64"))

    def forward(self, images):
        hidden = F.relu(self.first(images))
        logits = self.head(hidden)
        unsure = F.softmax(logits).max(axis=1) < 0.9
        if unsure.any():
            rows = paddle.nonzero(unsure).flatten()
            state, guess = paddle.index_select(hidden, rows), paddle.index_select(logits, rows)
            turn = paddle.zeros([], "int64")
            while turn < 3 and (F.softmax(guess).max(axis=1) < 0.9).any():
                state = paddle.tanh(self.refine(paddle.concat([state, F.softmax(guess)], axis=1)))
                guess = guess + self.head(state)
                turn = turn + 1
            logits = paddle.scatter(logits, rows, guess)
            self.refined = self.refined + rows.shape[0]
        return logits
