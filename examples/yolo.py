"""A detector in one look (Redmon et al., 2016): a box, a confidence and a class for each cell of a grid.

Run it with `python3 examples/yolo.py`. Pictures hold rectangles of three colours. What the network says is turned
into boxes by non-maximum suppression in plain Python: a `while` over an unknown number of boxes, a Program under
`to_static`.
"""

from __future__ import annotations

import argparse

import numpy as np
from learning import fit, report, training_step

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st import nn

SIZE, GRID, CLASSES = 32, 4, 3
CELL = SIZE // GRID


class Detector(nn.Layer):
    """For pictures [n, 3, 32, 32]: [n, 4, 4, 5 + classes], per cell confidence, centre, width, height, classes."""

    def __init__(self, width: int = 12):
        super().__init__()
        blocks = []
        for before, after in ((3, width), (width, 2 * width), (2 * width, 4 * width)):
            blocks += [nn.Conv2D(before, after, 3, stride=2, padding=1, bias_attr=False)]
            blocks += [nn.BatchNorm2D(after), nn.Silu()]
        self.backbone = nn.Sequential(*blocks)
        self.head = nn.Conv2D(4 * width, 5 + CLASSES, 3, padding=1)

    def forward(self, pictures):
        return self.head(self.backbone(pictures)).transpose([0, 2, 3, 1])


def boxes_of(said):
    """Return the boxes [..., 4] (left, top, right, bottom) that the cells [4, 4] speak of, from 0 to 1."""
    corner = paddle.stack(paddle.meshgrid(paddle.arange(GRID), paddle.arange(GRID))[::-1], axis=-1)
    centre = (F.sigmoid(said[..., 1:3]) + corner.astype(said.dtype)) / GRID
    half = F.sigmoid(said[..., 3:5]) / 2
    return paddle.concat([centre - half, centre + half], axis=-1)


def overlap(a, b):
    """Return the area that boxes [..., 4] have in common, divided by the area of both together."""
    sides = (paddle.minimum(a[..., 2:], b[..., 2:]) - paddle.maximum(a[..., :2], b[..., :2])).clip(min=0)
    common, areas = sides.prod(axis=-1), [(c[..., 2:] - c[..., :2]).prod(axis=-1) for c in (a, b)]
    return common / (areas[0] + areas[1] - common + 1e-9)


def loss_of(detector: Detector):
    """Return the loss of pictures, boxes [n, 4, 4, 4] and classes [n, 4, 4], which are -1 where there is nothing."""

    def loss(pictures, boxes, classes):
        said, there = detector(pictures), (classes >= 0).astype("float32")
        confidence = F.binary_cross_entropy_with_logits(said[..., 0], there)
        missed = ((1 - overlap(boxes_of(said), boxes)) * there).sum() / there.sum()
        return 5 * confidence + missed + F.cross_entropy(said[..., 5:], classes, ignore_index=-1)

    return loss


@paddle.no_grad()
def detect(detector: Detector, picture, sure: float = 0.5, same: float = 0.4):
    """Return boxes [k, 4], confidences [k] and classes [k] found in one picture [3, 32, 32], the surest first."""
    said = detector(picture.unsqueeze(0))[0]
    confidence = F.sigmoid(said[..., 0]).flatten()
    boxes, classes = boxes_of(said).reshape([-1, 4]), said[..., 5:].argmax(axis=-1).flatten()
    left = confidence.argsort(descending=True)
    left = left[confidence[left] > sure]
    kept = []
    while left.shape[0] > 0:
        best = left[0]
        kept.append(best)
        left = left[overlap(boxes[left], boxes[best]) < same]
    if len(kept) == 0:
        return paddle.zeros([0, 4]), paddle.zeros([0]), paddle.zeros([0], "int64")
    chosen = paddle.stack(kept)
    return boxes[chosen], confidence[chosen], classes[chosen]


def pictures(rng: np.random.Generator, count: int) -> list[paddle.Tensor]:
    """Return pictures of one or two rectangles, and for the cell of each centre its box and its class, its colour."""
    images = rng.normal(0, 0.1, (count, 3, SIZE, SIZE))
    boxes, classes = np.zeros((count, GRID, GRID, 4)), np.full((count, GRID, GRID), -1)
    for image, box, label in zip(images, boxes, classes, strict=True):
        for _ in range(rng.integers(1, 3)):
            width, height = rng.integers(6, 15, 2)
            left, top = rng.integers(0, SIZE - width), rng.integers(0, SIZE - height)
            colour, at = rng.integers(CLASSES), (int(top + height / 2) // CELL, int(left + width / 2) // CELL)
            image[:, top : top + height, left : left + width] = np.eye(3)[colour][:, None, None]
            box[at], label[at] = np.array([left, top, left + width, top + height]) / SIZE, colour
    return [paddle.to_tensor(a.astype(d)) for a, d in ((images, "float32"), (boxes, "float32"), (classes, "int64"))]


def train(steps: int, batch: int = 16, static: bool = True) -> tuple[Detector, list[float]]:
    """Return a trained detector and the loss at each step."""
    paddle.seed(0)
    model, rng = Detector(), np.random.default_rng(0)
    adam = paddle.optimizer.Adam(0.005, parameters=model.parameters())
    return model, fit(training_step(loss_of(model), adam, static), (pictures(rng, batch) for _ in range(steps)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    model, losses = train(parser.parse_args().steps)
    report("yolo", losses)
    model.eval()
    find = paddle.jit.to_static(lambda picture: detect(model, picture), full_graph=True)
    images, boxes, classes = pictures(np.random.default_rng(1), 3)
    for image, box, label in zip(images, boxes, classes, strict=True):
        print("there are", (box[label >= 0] * SIZE).round().tolist(), label[label >= 0].tolist())
        found, confidence, colours = find(image)
        print("   found ", (found * SIZE).round().tolist(), colours.tolist(), confidence.round(2).tolist())


if __name__ == "__main__":
    main()
