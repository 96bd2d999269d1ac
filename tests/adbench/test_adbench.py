"""ADBench's objectives against its golden values and Jacobians, within its own tolerance (docs/JacobianCheck.md there).

Data and values are from github.com/microsoft/ADBench, in tests/data/adbench.json with their licence.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import dy2st as paddle
from tests.adbench import objectives

AG = paddle.incubate.autograd
TOLERANCE = 1e-8


@cache
def data():
    path = Path(__file__).parents[1] / "data" / "adbench.json"
    return json.loads(path.read_text(encoding="utf-8"))


def near(found, wanted):
    """Assert that |x - y| / max(1, |x| + |y|) is small, as ADBench does."""
    x, y = np.asarray(found), np.asarray(wanted)
    assert x.shape == y.shape
    assert np.max(np.abs(x - y) / np.maximum(1, np.abs(x) + np.abs(y))) < TOLERANCE


def t(values, dtype="float64"):
    return paddle.to_tensor(np.asarray(values, dtype))


def gradients(f, *xs):
    """Return f(*xs) and its gradients."""
    for x in xs:
        x.stop_gradient = False
    value = f(*xs)
    return value, paddle.grad(value, xs)


@pytest.fixture(params=["eager", "static"])
def run(request):
    """Call a function, as it is or under to_static."""
    return (lambda f: f) if request.param == "eager" else (lambda f: paddle.jit.to_static(f, full_graph=True))


def test_gmm(run):
    given = data()["gmm"]
    gamma, m = given["wishart"]
    x = t(given["x"])
    f = lambda alphas, means, icf: objectives.gmm(alphas, means, icf, x, gamma, int(m))
    value, found = run(lambda *xs: gradients(f, *xs))(t(given["alphas"]), t(given["means"]), t(given["icf"]))
    near(value.numpy(), given["objective"])
    near(np.concatenate([g.numpy().ravel() for g in found]), given["gradient"])


def observed(camera, x, weight, feature):
    """An observation's error and its Jacobian at camera, point and weight."""
    f = lambda camera, x, weight: objectives.reprojection(camera, x, weight, feature)
    return f(camera, x, weight), AG.Jacobian(f, [camera, x, weight])[:]


def test_bundle_adjustment(run):
    given = data()["ba"]
    count = given["counts"][2]
    inputs = [t(given[name]) for name in ("camera", "point", "weight", "feature")]
    batch = [paddle.stack([x] * count) for x in inputs]
    errors, blocks = run(lambda *xs: paddle.vmap(observed)(*xs))(*batch)
    near(errors.numpy(), [given["reprojection"]] * count)
    near(blocks.numpy(), [given["block"]] * count)
    value, slope = run(lambda w: AG.vjp(lambda w: 1.0 - w**2, w))(inputs[2])
    near([float(value), float(slope)], [given["weight_error"], given["weight_slope"]])


def hand():
    given = data()["hand"]
    bones, numbers = len(given["parents"]), [v["number"] for v in given["vertices"]]
    weights = np.zeros((len(numbers), bones))
    for row, vertex in enumerate(given["vertices"]):
        for bone, weight in vertex["weights"].items():
            weights[row, int(bone)] = weight
    return {
        "parents": given["parents"],
        "relatives": t(given["relatives"]).reshape([bones, 4, 4]),
        "inverse_absolutes": t(given["inverse_absolutes"]).reshape([bones, 4, 4]),
        "weights": t(weights),
        "base": t([[*v["position"], 1.0] for v in given["vertices"]]),
        "points": t(given["points"]),
        "correspondences": t([numbers.index(c) for c in given["correspondences"]], "int64"),
        "triangles": t([[numbers.index(v) for v in triangle] for triangle in given["triangles"]], "int64"),
    }


def test_hand(run):
    given, model = data()["hand"], hand()
    f = lambda theta: objectives.hand_points(theta, model)
    found = run(lambda theta: (f(theta), AG.Jacobian(f, theta)[:]))(t(given["theta"]))
    near(found[0].numpy().ravel(), given["objective"])
    near(found[1].numpy(), given["jacobian"])


def test_hand_with_points_on_the_surface(run):
    given, model = data()["hand"], hand()
    f = lambda us, theta: objectives.hand_surface(us, theta, model)
    found = run(lambda us, theta: (f(us, theta), AG.Jacobian(f, [us, theta])[:]))(t(given["us"]), t(given["theta"]))
    near(found[0].numpy().ravel(), given["objective_us"])
    whole = found[1].numpy()
    own = [whole[row, 2 * (row // 3) : 2 * (row // 3) + 2] for row in range(6)]
    near(np.concatenate([own, whole[:, 4:]], 1), given["jacobian_us"])


@pytest.mark.parametrize("static", [pytest.param(False, marks=pytest.mark.slow), True], ids=["eager", "static"])
def test_lstm(static):
    run = paddle.jit.to_static if static else lambda f: f
    given = data()["lstm"]
    sequence, state = t([[int(c) for c in one] for one in given["sequence"]]), t(given["state"])
    f = lambda main, extra: objectives.lstm(main, extra, state, sequence)
    value, found = run(lambda *xs: gradients(f, *xs))(t(given["main"]), t(given["extra"]))
    near(value.numpy(), given["objective"])
    near(np.concatenate([g.numpy().ravel() for g in found]), given["gradient"])
