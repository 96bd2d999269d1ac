"""The objectives of ADBench in plain Python: a mixture model, bundle adjustment, a tracked hand, an LSTM.

Šrajer, Kukelova, Fitzgibbon 2018, "A benchmark of selected algorithmic differentiation tools on some problems in
computer vision and machine learning". They run eagerly and under to_static as they are.
"""

import math

import dy2st as paddle

# ---- GMM: the log likelihood of points under a mixture of Gaussians, with a Wishart prior ----------------------------


def gmm(alphas, means, icf, x, gamma, m):
    """Return the objective; `icf` has log diagonals, then the columns below them of square roots of precisions."""
    (n, d), k = x.shape, alphas.shape[0]
    logs, diagonal = icf[:, :d].sum(1), paddle.exp(icf[:, :d])
    columns = [i for i in range(d) for _ in range(i + 1, d)]
    rows = [j for i in range(d) for j in range(i + 1, d)]
    lower = paddle.zeros([k, d, d], "float64")
    lower[:, paddle.to_tensor(rows), paddle.to_tensor(columns)] = icf[:, d:]
    away = x.unsqueeze(1) - means
    scaled = diagonal * away + paddle.einsum("kij,nkj->nki", lower, away)
    inner = alphas + logs - 0.5 * (scaled**2).sum(2)
    fit = paddle.logsumexp(inner, 1).sum() - n * paddle.logsumexp(alphas)
    return fit - 0.5 * n * d * math.log(2 * math.pi) + wishart_prior(d, gamma, m, logs, diagonal, icf)


def wishart_prior(d, gamma, m, logs, diagonal, icf):
    free = d + m + 1
    constant = free * d * math.log(gamma / math.sqrt(2)) - log_multigamma(0.5 * free, d)
    squares = (diagonal**2).sum() + (icf[:, d:] ** 2).sum()
    return 0.5 * gamma * gamma * squares - m * logs.sum() - icf.shape[0] * constant


def log_multigamma(a, d):
    return 0.25 * d * (d - 1) * math.log(math.pi) + sum(math.lgamma(a - 0.5 * j) for j in range(d))


# ---- BA: where a camera sees a point --------------------------------------------------------------------------------


def rotated(rotation, x):
    """Rotate a point by an axis times an angle (Rodrigues)."""
    square = (rotation**2).sum()
    if square != 0.0:
        angle = paddle.sqrt(square)
        axis = rotation / angle
        along = axis * (axis * x).sum() * (1.0 - paddle.cos(angle))
        return x * paddle.cos(angle) + paddle.cross(axis, x) * paddle.sin(angle) + along
    return x + paddle.cross(rotation, x)


def reprojection(camera, x, weight, feature):
    """Return the weighted error of one observation; a camera is rotation, centre, focal length, offset, distortion."""
    seen = rotated(camera[:3], x - camera[3:6])
    flat = seen[:2] / seen[2]
    square = (flat**2).sum()
    bent = flat * (1.0 + camera[9] * square + camera[10] * square * square)
    return weight * (bent * camera[6] + camera[7:9] - feature)


# ---- HAND: where the vertices of a posed hand are -------------------------------------------------------------------


def finger_rotation(bend, spread):
    """Rotate about z by `spread` after x by `bend`; a [4, 4] transform."""
    zero, one = paddle.zeros_like(bend), paddle.ones_like(bend)
    cx, sx, cz, sz = paddle.cos(bend), paddle.sin(bend), paddle.cos(spread), paddle.sin(spread)
    rows = [cz, -sz * cx, sz * sx, zero, sz, cz * cx, -cz * sx, zero, zero, sx, cx, zero, zero, zero, zero, one]
    return paddle.stack(rows).reshape([4, 4])


def rotation_of(angle_axis):
    """Return the matrix of a rotation by an axis times an angle."""
    angle = paddle.sqrt((angle_axis**2).sum())
    if angle < 0.0001:
        return paddle.eye(3, dtype="float64")
    x, y, z = angle_axis / angle
    zero = paddle.zeros_like(x)
    cross = paddle.stack([zero, -z, y, z, zero, -x, -y, x, zero]).reshape([3, 3])
    outer = paddle.stack([x, y, z]).unsqueeze(1) * paddle.stack([x, y, z])
    eye = paddle.eye(3, dtype="float64")
    return outer + (eye - outer) * paddle.cos(angle) + cross * paddle.sin(angle)


def vertices(theta, hand):
    """Return the vertices of the hand in a pose: rotation, translation, then four angles for each finger."""
    fingers = theta[6:].reshape([5, 4])
    zeros = paddle.zeros([5], "float64")
    bends = paddle.stack([fingers[:, 0], fingers[:, 2], fingers[:, 3], zeros], 1).reshape([20])
    spreads = paddle.stack([fingers[:, 1], zeros, zeros, zeros], 1).reshape([20])
    palm = paddle.zeros([2], "float64")
    turns = paddle.vmap(finger_rotation)(paddle.concat([palm, bends]), paddle.concat([palm, spreads]))
    relatives = hand["relatives"] @ turns
    absolutes = []
    for i, parent in enumerate(hand["parents"]):
        absolutes.append(relatives[i] if parent < 0 else absolutes[parent] @ relatives[i])
    transforms = paddle.stack(absolutes) @ hand["inverse_absolutes"]
    skinned = paddle.einsum("vb,bij,vj->vi", hand["weights"], transforms, hand["base"])[:, :3]
    return skinned @ rotation_of(theta[:3]).T + theta[3:6]


def hand_points(theta, hand):
    """Return how far points are from their vertices."""
    return hand["points"] - vertices(theta, hand)[hand["correspondences"]]


def hand_surface(us, theta, hand):
    """Return how far points are from where `us` say that they lie in their triangles."""
    corners = vertices(theta, hand)[hand["triangles"]]
    weights = paddle.concat([us, 1.0 - us.sum(1, keepdim=True)], 1)
    return hand["points"] - (weights.unsqueeze(2) * corners).sum(1)


# ---- LSTM: the loss of a model that predicts the next of a sequence -------------------------------------------------


def lstm_step(weight, bias, hidden, cell, x):
    forget, enter, leave, change = (paddle.concat([x, hidden, x, hidden]) * weight + bias).reshape([4, -1])
    cell = cell * paddle.nn.functional.sigmoid(forget) + paddle.nn.functional.sigmoid(enter) * paddle.tanh(change)
    return paddle.nn.functional.sigmoid(leave) * paddle.tanh(cell), cell


def lstm(main, extra, state, sequence):
    """Return the mean loss; `main` has weights and biases of each layer, `state` hidden and cell of each."""
    total = paddle.zeros([], "float64")
    for t in range(sequence.shape[0] - 1):
        x, after = sequence[t] * extra[0], []
        for i in range(0, 4, 2):
            x, cell = lstm_step(main[i], main[i + 1], state[i], state[i + 1], x)
            after += [x, cell]
        state = paddle.stack(after)
        guess = x * extra[1] + extra[2]
        total = total + (sequence[t + 1] * (guess - paddle.log(paddle.exp(guess).sum() + 2))).sum()
    return -total / ((sequence.shape[0] - 1) * sequence.shape[1])
