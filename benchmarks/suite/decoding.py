"""Greedy decoding by a GRU with attention; it ends at the end-of-sentence token, by `break`."""

from typing import Any

import numpy as np

from benchmarks.suite.names import Jax, Numpy
from benchmarks.suite.onnx_model import graph
from benchmarks.suite.sides import (
    inference,
    with_jax,
    with_numpy,
    with_onnx,
    with_paddle,
    with_torch,
    without_gradients,
)
from benchmarks.suite.workload import Arrays, Job, Row, Work, normal

TAKEN = "memory", "embedding", "places", "wx", "wh", "b", "wo", "bo"


def arrays(random: np.random.Generator, source: int, width: int, words: int, most: int) -> Arrays:
    """Make a model whose sentence is long: the end token is the one that comes up last."""
    shapes = {"memory": (source, width), "embedding": (words, width), "places": (most, width)}
    shapes |= {"wx": (2 * width, 3 * width), "wh": (width, 3 * width), "b": (3 * width,)}
    shapes |= {"wo": (width, words), "bo": (words,)}
    given = normal(random, **shapes)
    given["places"] *= 10
    given["end"] = np.array(-1)
    tokens = [int(token) for token in decode(np, Numpy(), given)]
    given["end"] = np.array(max(set(tokens), key=tokens.index))
    return given


def work(source: int, width: int, words: int, most: int) -> Work:
    """Count half of the most turns."""
    weights = 9 * width * width + width * words + 2 * source * width
    return Work(most * weights, 4.0 * weights)


def turned(names: Any, concat: Any, token: Any, place: Any, h: Any, *weights: Any) -> tuple[Any, Any]:
    """Return the scores of the next word, and the state after it; all are vectors."""
    memory, embedding, wx, wh, b, wo, bo = weights
    n = h.shape[0]
    context = names.softmax(memory @ h) @ memory
    z, u = concat([embedding[token] + place, context]) @ wx + b, h @ wh
    reset, update = names.sigmoid(z[:n] + u[:n]), names.sigmoid(z[n : 2 * n] + u[n : 2 * n])
    h = (1 - update) * names.tanh(z[2 * n :] + reset * u[2 * n :]) + update * h
    return h @ wo + bo, h


def decode(package: Any, names: Any, given: Arrays) -> list[Any]:
    """Return the tokens, by NumPy or torch."""
    memory, embedding, places, *weights = (given[name] for name in TAKEN)
    h, token, tokens = 0 * memory[0], 0, []
    for place in places:
        scores, h = turned(names, getattr(package, "concatenate", None), token, place, h, memory, embedding, *weights)
        token = scores.argmax()
        tokens.append(token)
        if token == given["end"]:
            break
    return tokens


def of_numpy(given: Arrays) -> Job:
    return lambda: _summed(decode(np, Numpy(), given))


def _summed(tokens: list[Any]) -> Any:
    return sum(int(token) for token in tokens), len(tokens)


# ---- by package -----------------------------------------------------------------------------------------------------
def of_paddle(paddle: Any, static: Any, given: Arrays) -> Job:
    memory, embedding, places, *weights = (paddle.to_tensor(given[name]) for name in TAKEN)
    end = paddle.to_tensor(given["end"])
    names = paddle.nn.functional

    def run(memory: Any) -> Any:
        h, token, tokens, turn = paddle.zeros_like(memory[0]), paddle.zeros([], "int64"), [], paddle.zeros([], "int64")
        while turn < places.shape[0]:
            scores, h = turned(names, paddle.concat, token, places[turn], h, memory, embedding, *weights)
            token = scores.argmax()
            tokens.append(token)
            turn += 1
            if token == end:
                break
        words = paddle.stack(tokens)
        return words.sum(), words.shape[0]

    return without_gradients(paddle, static(run), memory)


def of_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    memory, embedding, places, *weights = (torch.from_numpy(given[name]) for name in TAKEN)
    end = int(given["end"])

    class Names:
        softmax = staticmethod(lambda x: torch.softmax(x, 0))
        sigmoid, tanh = torch.sigmoid, torch.tanh

    @compiled
    def one(token: Any, place: Any, h: Any) -> Any:
        scores, h = turned(Names, torch.cat, token, place, h, memory, embedding, *weights)
        return scores.argmax(), h

    def run() -> Any:
        h, token, tokens = torch.zeros_like(memory[0]), torch.zeros((), dtype=torch.int64), []
        for place in places:
            token, h = one(token, place, h)
            tokens.append(token)
            if token == end:
                break
        words = torch.stack(tokens)
        return words.sum(), torch.tensor(len(tokens))

    return inference(torch, run)


def of_jax(jax: Any, given: Arrays) -> Job:
    numpy = jax.numpy
    tensors = [numpy.asarray(given[name]) for name in TAKEN]

    def run(end: Any, memory: Any, embedding: Any, places: Any, *weights: Any) -> Any:
        def one(carried: Any) -> Any:
            h, token, words, turn = carried
            scores, h = turned(Jax(jax), numpy.concatenate, token, places[turn], h, memory, embedding, *weights)
            token = scores.argmax().astype("int32")
            return h, token, words.at[turn].set(token), turn + 1

        def goes_on(carried: Any) -> Any:
            return (carried[3] < places.shape[0]) & (carried[1] != end)

        words = numpy.zeros(places.shape[0], "int32")
        start = numpy.zeros_like(memory[0]), numpy.int32(0), words, numpy.int32(0)
        # the first turn stands before the loop, because the start token may be the end token
        _, _, words, turns = jax.lax.while_loop(goes_on, one, one(start))
        return words.sum(), turns

    run, end = jax.jit(run), numpy.int32(given["end"])
    return lambda: run(end, *tensors)


def of_onnx(given: Arrays) -> tuple[Any, Arrays]:
    """Write the loop with the words as what its turns give."""
    body = graph("body")
    c = {name: body.constant(given[name]) for name in TAKEN if name != "memory"}
    body.input("turn", np.zeros((), "int64"))
    body.input("go", np.zeros((), "bool"))
    body.input("h", given["memory"][0], [given["memory"].shape[1]])
    body.input("token", np.zeros((), "int64"), [])
    add, n = body.add, given["memory"].shape[1]
    context = add("MatMul", add("Softmax", add("MatMul", "memory", "h"), axis=0), "memory")
    word = add("Add", add("Gather", c["embedding"], "token"), add("Gather", c["places"], "turn"))
    z = add("Add", add("MatMul", add("Concat", word, context, axis=0), c["wx"]), c["b"])
    zr, zu, zn = add("Split", z, results=3, axis=0, num_outputs=3)
    ur, uu, un = add("Split", add("MatMul", "h", c["wh"]), results=3, axis=0, num_outputs=3)
    reset, update = add("Sigmoid", add("Add", zr, ur)), add("Sigmoid", add("Add", zu, uu))
    new = add("Tanh", add("Add", zn, add("Mul", reset, un)))
    kept = add("Sub", body.constant(np.ones(n, "float32")), update)
    h = add("Add", add("Mul", kept, new), add("Mul", update, "h"))
    scores = add("Add", add("MatMul", h, c["wo"]), c["bo"])
    token = add("ArgMax", scores, axis=0, keepdims=0)
    body.result(add("Not", add("Equal", token, body.constant(given["end"]))), np.bool_)
    body.result(h)
    body.result(token, np.int64)
    body.result(add("Identity", token), np.int64)
    g = graph("decode")
    g.input("memory", given["memory"])
    most = g.constant(np.int64(len(given["places"])))
    start = g.constant(np.zeros(n, "float32")), g.constant(np.int64(0))
    _, _, words = g.add("Loop", most, g.constant(np.array(True)), *start, results=3, body=body.proto())
    g.result(g.add("ReduceSum", words, keepdims=0), np.int64)
    g.result(g.add("Size", words), np.int64)
    return g.model(), {"memory": given["memory"]}


ROWS = (
    Row(
        "decode",
        "GRU with attention, greedy decoding, break at the end token",
        arrays,
        {"source": 20, "width": 64, "words": 128, "most": 100},
        {"source": 3, "width": 5, "words": 7, "most": 9},
        with_paddle(of_paddle) | with_torch(of_torch) | with_jax(of_jax) | with_onnx(of_onnx) | with_numpy(of_numpy),
        lambda given: of_numpy(given)(),
        work,
        goal=0.5,
    ),
)
