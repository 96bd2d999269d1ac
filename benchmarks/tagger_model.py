"""A model of 200 lines as people write them, with Python's control flow all over: what conversion is measured on."""

import dy2st as paddle
from dy2st import nn
from dy2st.nn import functional as F

PAD, START, END = 0, 1, 2


class Embedding(nn.Layer):
    """Words, places, and a kind for each, added and normalised."""

    def __init__(self, words, places, width, dropout):
        super().__init__()
        self.word = nn.Embedding(words, width)
        self.place = nn.Embedding(places, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = dropout
        self.places = places

    def forward(self, words):
        length = words.shape[1]
        if length > self.places:
            raise ValueError("the text is longer than the places that were trained")
        x = self.word(words) + self.place(paddle.arange(length))
        x = self.norm(x)
        if self.training and self.dropout > 0:
            x = F.dropout(x, self.dropout)
        return x


class Attention(nn.Layer):
    """Several heads that look at each other's words; `memory` is looked at instead where it is given."""

    def __init__(self, width, heads):
        super().__init__()
        assert width % heads == 0, "the heads share the width evenly"
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)

    def split(self, x):
        batch, length, width = x.shape
        x = x.reshape([batch, length, self.heads, width // self.heads])
        return x.transpose([0, 2, 1, 3])

    def forward(self, x, memory=None, mask=None, causal=False):
        source = x if memory is None else memory
        q, k, v = self.split(self.query(x)), self.split(self.key(source)), self.split(self.value(source))
        scores = paddle.matmul(q, k, transpose_y=True) / (q.shape[-1] ** 0.5)
        if mask is not None:
            scores = scores + (1.0 - mask.unsqueeze(1).unsqueeze(1)) * -1e9
        if causal:
            rows = paddle.arange(x.shape[1])
            later = rows.unsqueeze(0) > rows.unsqueeze(1)
            scores = scores + later.astype("float32") * -1e9
        weights = F.softmax(scores, axis=-1)
        mixed = paddle.matmul(weights, v).transpose([0, 2, 1, 3])
        batch, length = x.shape[0], x.shape[1]
        return self.out(mixed.reshape([batch, length, -1]))


class Block(nn.Layer):
    """Attention to itself, to the memory where there is one, and two linear layers, each added to what came in."""

    def __init__(self, width, heads, with_memory):
        super().__init__()
        self.attention = Attention(width, heads)
        self.look = Attention(width, heads) if with_memory else None
        self.norms = nn.LayerList([nn.LayerNorm(width) for _ in range(3 if with_memory else 2)])
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x, memory=None, mask=None):
        y = self.attention(x, mask=None if self.look is not None else mask, causal=self.look is not None)
        x = self.norms[0](x + y)
        at = 1
        if self.look is not None and memory is not None:
            x = self.norms[at](x + self.look(x, memory, mask))
            at += 1
        y = self.narrow(F.relu(self.wide(x)))
        return self.norms[at](x + y)


class Smoother(nn.Layer):
    """A recurrent layer written as a loop, which stops where the state no longer moves."""

    def __init__(self, width):
        super().__init__()
        self.update, self.reset, self.candidate = (nn.Linear(2 * width, width) for _ in range(3))
        self.tolerance = 1e-4

    def step(self, x, h):
        both = paddle.concat([x, h], axis=-1)
        z, r = F.sigmoid(self.update(both)), F.sigmoid(self.reset(both))
        n = paddle.tanh(self.candidate(paddle.concat([x, r * h], axis=-1)))
        return (1 - z) * n + z * h

    def forward(self, x):
        h = paddle.zeros_like(x[:, 0])
        states = []
        for t in range(x.shape[1]):
            before = h
            h = self.step(x[:, t], h)
            if (h - before).abs().max() < self.tolerance:
                break
            states.append(h)
        turns = 0
        while (h - self.step(h, h)).abs().max() > 1.0 and turns < 5:
            h = self.step(h, h)
            turns += 1
        if len(states) == 0:
            return h.unsqueeze(1), turns
        return paddle.stack(states, axis=1), turns


class Tagger(nn.Layer):
    """Encode the words, decode the tags one after the other, or score given ones."""

    def __init__(self, words=50, tags=9, width=16, heads=2, depth=2, dropout=0.1):
        super().__init__()
        self.embedding = Embedding(words, 64, width, dropout)
        self.tags = Embedding(tags, 64, width, dropout)
        self.encoder = nn.LayerList([Block(width, heads, False) for _ in range(depth)])
        self.decoder = nn.LayerList([Block(width, heads, True) for _ in range(depth)])
        self.smoother = Smoother(width)
        self.gate = nn.Linear(width, 1)
        self.out = nn.Linear(width, tags)
        self.calls = 0

    def encode(self, words):
        mask = (words != PAD).astype("float32")
        x = self.embedding(words)
        for i, block in enumerate(self.encoder):
            y = block(x, mask=mask)
            x = y if i == 0 else x + y
        smooth, turns = self.smoother(x)
        gate = F.sigmoid(self.gate(x)).mean()
        if gate > 0.5:
            x = x + gate * smooth.mean(axis=1, keepdim=True)
        elif gate < 0.1:
            x = x - gate
        return x, mask, turns

    def decode(self, tags, memory, mask):
        x = self.tags(tags)
        for block in self.decoder:
            x = block(x, memory, mask)
        return self.out(x)

    def loss(self, logits, tags, mask):
        losses = F.cross_entropy(logits, tags, reduction="none").squeeze(-1)
        total = (losses * mask).sum() / mask.sum()
        penalty = 0.0
        for name, p in self.named_parameters():
            if "weight" in name and p.ndim == 2:
                penalty = penalty + (p * p).mean()
        return total + 1e-4 * penalty

    def greedy(self, memory, mask, longest):
        batch = memory.shape[0]
        found = paddle.full([batch, 1], START, dtype="int64")
        scores = paddle.zeros([batch])
        open_rows = paddle.ones([batch])
        for _ in range(longest):
            logits = self.decode(found, memory, mask)[:, -1]
            best = logits.argmax(axis=-1)
            scores = scores + open_rows * F.log_softmax(logits, axis=-1).max(axis=-1)
            found = paddle.concat([found, best.unsqueeze(1)], axis=1)
            open_rows = open_rows * (best != END).astype("float32")
            if open_rows.sum() == 0:
                break
        return found, scores

    def forward(self, words, tags=None, longest=6):
        self.calls += 1
        memory, mask, turns = self.encode(words)
        if tags is None:
            found, scores = self.greedy(memory, mask, longest)
            return {"tags": found, "scores": scores, "turns": turns}
        start = paddle.full([words.shape[0], 1], START, dtype="int64")
        logits = self.decode(paddle.concat([start, tags[:, :-1]], axis=1), memory, mask)
        loss = self.loss(logits, tags, mask)
        accuracy = ((logits.argmax(axis=-1) == tags).astype("float32") * mask).sum() / mask.sum()
        return {"loss": loss, "accuracy": accuracy, "turns": turns}
