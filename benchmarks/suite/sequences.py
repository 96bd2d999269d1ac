"""Train steps on sequences, as tutorials write them: a small BERT, a translator of GRUs with attention."""

from typing import Any

import numpy as np

from benchmarks.suite.nets import Decorate, Package, eagerly, tutorial
from benchmarks.suite.workload import Arrays, Job, Row, layers, normal

HEADS = 8


# ---- a small BERT ---------------------------------------------------------------------------------------------------
def bert_arrays(random: np.random.Generator, batch: int, turns: int, width: int, words: int, depth: int) -> Arrays:
    shapes: dict[str, tuple[int, ...]] = {"words.weight": (words, width), "places.weight": (turns, width)}
    norms = ["norm", *(f"layers.{i}.{name}" for i in range(depth) for name in ("norm1", "norm2"))]
    parts = {"query": (width, width), "key": (width, width), "value": (width, width), "mixed": (width, width)}
    parts |= {"wide": (width, 4 * width), "narrow": (4 * width, width)}
    for i in range(depth):
        for part, shape in parts.items():
            shapes |= {f"layers.{i}.{part}.weight": shape, f"layers.{i}.{part}.bias": shape[1:]}
    shapes |= {"out.weight": (width, words), "out.bias": (words,)}
    made = layers(random, **shapes) | {f"{norm}.weight": np.ones(width, "float32") for norm in norms}
    made |= normal(random, **{f"{norm}.bias": (width,) for norm in norms})
    tokens = {name: random.integers(0, words, (batch, turns)) for name in ("x", "y")}
    return made | tokens | {"sizes": np.array([width, words, turns, depth])}


def bert(p: Package, width: int, words: int, turns: int, depth: int) -> Any:
    """Return the net: embeddings, `depth` layers with norms after the sums, scores of all words."""
    nn, base, attention = p.nn, p.base, p.functional.scaled_dot_product_attention
    gelu, torch = p.functional.gelu, p.torch

    class Layer(base):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
            self.mixed = nn.Linear(width, width)
            self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

        def forward(self, x: Any) -> Any:
            heads = [x.shape[0], x.shape[1], HEADS, width // HEADS]
            q, k, v = (part(x).reshape(heads) for part in (self.query, self.key, self.value))
            if torch:
                mixed = attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)).transpose(1, 2)
            else:
                mixed = attention(q, k, v)
            x = self.norm1(x + self.mixed(mixed.reshape(x.shape)))
            return self.norm2(x + self.narrow(gelu(self.wide(x))))

    class Bert(base):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(turns, width)
            self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, words)
            self.layers = nn.ModuleList([Layer() for _ in range(depth)]) if torch else made()

        def forward(self, tokens: Any) -> Any:
            x = self.norm(self.words(tokens) + self.places.weight)
            for layer in self.layers:
                x = layer(x)
            return self.out(x)

    def made() -> Any:
        return nn.LayerList([Layer() for _ in range(depth)])

    return Bert()


def bert_job(p: Package, model: Decorate, whole: Decorate, given: Arrays) -> Job:
    width, words, turns, depth = (int(n) for n in given["sizes"])
    net = p.filled(bert(p, width, words, turns, depth), given)
    optimizer, cross_entropy = p.optimizer("AdamW", list(net.parameters()), 1e-4), p.functional.cross_entropy
    net = model(net)

    @whole
    def step(x: Any, y: Any) -> Any:
        loss = cross_entropy(net(x).reshape([-1, words]), y.reshape([-1]))
        loss.backward()
        optimizer.step()
        p.cleared(optimizer)
        return loss

    x, y = p.tensor(given["x"]), p.tensor(given["y"])
    return lambda: step(x, y)


# ---- a translator ---------------------------------------------------------------------------------------------------
def translator_arrays(random: np.random.Generator, batch: int, turns: int, width: int, words: int) -> Arrays:
    shapes: dict[str, tuple[int, ...]] = {"source.weight": (words, width), "target.weight": (words, width)}
    for name, into in (("encoder", width), ("decoder", 2 * width)):
        shapes |= {f"{name}.weight_ih": (3 * width, into), f"{name}.weight_hh": (3 * width, width)}
        shapes |= {f"{name}.bias_ih": (3 * width,), f"{name}.bias_hh": (3 * width,)}
    shapes |= {"attend.weight": (width, width), "attend.bias": (width,)}
    shapes |= {"out.weight": (width, words), "out.bias": (words,)}
    tokens = {name: random.integers(0, words, (batch, turns)) for name in ("x", "y")}
    return layers(random, **shapes) | tokens | {"sizes": np.array([width, words])}


def translator(p: Package, width: int, words: int) -> Any:
    """Return a GRU that reads, and one that writes what attention gives it of the first one's states."""
    nn, base, stack, concat, softmax = p.nn, p.base, p.stack, p.concat, p.softmax

    class Translator(base):
        def __init__(self):
            super().__init__()
            self.source, self.target = nn.Embedding(words, width), nn.Embedding(words, width)
            self.encoder, self.decoder = nn.GRUCell(width, width), nn.GRUCell(2 * width, width)
            self.attend, self.out = nn.Linear(width, width), nn.Linear(width, words)

        def forward(self, source: Any, target: Any, h: Any) -> Any:
            memory, scores = [], []
            for t in range(source.shape[1]):
                h = state_of(self.encoder(self.source(source[:, t]), h))
                memory.append(h)
            memory = stack(memory, 1)
            for t in range(target.shape[1]):
                chances = softmax((self.attend(h).unsqueeze(1) * memory).sum(-1), -1)
                context = (chances.unsqueeze(-1) * memory).sum(1)
                h = state_of(self.decoder(concat([self.target(target[:, t]), context], -1), h))
                scores.append(self.out(h))
            return stack(scores, 1)

    return Translator()


def state_of(given: Any) -> Any:
    """Return the state that a cell gave: Paddle's gives an output before it."""
    return given[1] if isinstance(given, tuple) else given


def translator_job(p: Package, model: Decorate, whole: Decorate, given: Arrays) -> Job:
    width, words = (int(n) for n in given["sizes"])
    net = p.filled(translator(p, width, words), given)
    optimizer, cross_entropy = p.optimizer("Adam", list(net.parameters()), 1e-3), p.functional.cross_entropy
    net = model(net)

    @whole
    def step(x: Any, y: Any, h: Any) -> Any:
        loss = cross_entropy(net(x, y, h).reshape([-1, words]), y.reshape([-1]))
        loss.backward()
        optimizer.step()
        p.cleared(optimizer)
        return loss

    x, y, h = p.tensor(given["x"]), p.tensor(given["y"]), p.tensor(np.zeros((len(given["x"]), width), "float32"))
    return lambda: step(x, y, h)


BERT, TRANSLATOR = tutorial(bert_job), tutorial(translator_job)
ROWS = (
    Row(
        "bert-step",
        "BERT-small, 4 layers of 512, 8 x 128 tokens, AdamW step",
        bert_arrays,
        {"batch": 8, "turns": 128, "width": 512, "words": 8000, "depth": 4},
        {"batch": 2, "turns": 3, "width": 16, "words": 11, "depth": 2},
        BERT,
        eagerly(BERT),
        tolerance=2e-3,
        first_call=1.0,
    ),
    Row(
        "seq2seq-step",
        "GRU translator with attention, 32 x 20 tokens, width 128, Adam step",
        translator_arrays,
        {"batch": 32, "turns": 20, "width": 128, "words": 1000},
        {"batch": 2, "turns": 3, "width": 5, "words": 7},
        TRANSLATOR,
        eagerly(TRANSLATOR),
        tolerance=2e-3,
        goal_of_model=0.5,
        first_call=1.0,
    ),
)
