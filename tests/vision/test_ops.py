"""Operations of detectors: values by hand and by loops over NumPy arrays, derivatives, Programs."""

import math

import numpy as np
import pytest

import dy2st as paddle
from dy2st.vision import ops
from dy2st.vision.ops.suppression import multiclass_nms

RNG = np.random.default_rng(5)


def boxes_of(n, extent=10.0, rng=RNG):
    low = rng.uniform(0, extent * 0.6, [n, 2])
    return np.concatenate([low, low + rng.uniform(1, extent * 0.4, [n, 2])], 1).astype("float32")


def overlap(a, b):
    both = max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def greedy(boxes, order, threshold, of=None):
    stay = []
    for i in order:
        if all(overlap(boxes[i], boxes[j]) <= threshold or (of is not None and of[i] != of[j]) for j in stay):
            stay.append(i)
    return [int(i) for i in stay]


def same_in_a_program(function, *arrays):
    """Return what a function gives eagerly, after a Program gave the same."""
    tensors = [paddle.to_tensor(a) for a in arrays]
    eager = function(*tensors)
    static = paddle.jit.to_static(function, full_graph=True)(*tensors)
    for e, s in zip(*((out if isinstance(out, (tuple, list)) else [out]) for out in (eager, static)), strict=True):
        np.testing.assert_allclose(e.numpy(), s.numpy(), rtol=1e-5, atol=1e-6)
    return eager


def test_boxes_that_overlap_better_ones_go():
    boxes, scores = boxes_of(60), RNG.permutation(60).astype("float32")
    order = np.argsort(-scores)
    made = same_in_a_program(lambda b, s: ops.nms(b, 0.3, s), boxes, scores)
    assert made.tolist() == greedy(boxes, order, 0.3)
    assert ops.nms(paddle.to_tensor(boxes), 0.5).tolist() == greedy(boxes, range(60), 0.5)
    of = RNG.integers(0, 3, 60)
    found = ops.nms(boxes, 0.1, scores, paddle.to_tensor(of), [0, 1, 2], top_k=7)
    assert found.tolist() == greedy(boxes, order, 0.1, of)[:7]
    with pytest.raises(ValueError, match="category_idxs without categories"):
        ops.nms(boxes, 0.1, scores, of)


def test_scores_are_less_by_their_overlap():
    boxes = np.array([[[0, 0, 2, 2], [0, 0, 2, 1], [5, 5, 6, 6]]], "float32")
    scores = np.array([[[0.1, 0.1, 0.1], [0.9, 0.8, 0.05]]], "float32")
    out, index, counts = ops.matrix_nms(boxes, scores, 0.06, 0.1, -1, -1, return_index=True)
    np.testing.assert_allclose(out.numpy(), [[1, 0.9, 0, 0, 2, 2], [1, 0.4, 0, 0, 2, 1]], rtol=1e-6)
    assert (index.tolist(), counts.tolist()) == ([[0], [1]], [2])
    soft, _, none = ops.matrix_nms(boxes, scores, 0.06, 0.1, -1, 1, True, 2.0, return_rois_num=False)
    np.testing.assert_allclose(soft.numpy()[:, 1], [0.9], rtol=1e-6)
    assert none is None


@pytest.mark.parametrize("top", [-1, 4, 0])
def test_boxes_of_many_images_and_classes_that_overlap_better_ones_go(top):
    images = RNG.integers(1, 4)
    boxes = np.stack([boxes_of(20) for _ in range(images)])
    scores = RNG.permutation(images * 3 * 20).reshape(images, 3, 20).astype("float32")
    wanted, numbers, counts = [], [], []
    for i in range(images):
        found = [(c, j) for c in (0, 2) for j in greedy(boxes[i], np.argsort(-scores[i, c]), 0.3)]
        found = [(c, j) for c, j in found if scores[i, c, j] > 30]
        best = sorted(found, key=lambda at: -scores[i, at[0], at[1]])[: None if top < 0 else top]
        stay = [at for at in found if at in best]
        wanted += [[c, scores[i, c, j], *boxes[i, j]] for c, j in stay]
        numbers += [[i * 20 + j] for _, j in stay]
        counts.append(len(stay))
    for _ in range(2):
        made = same_in_a_program(
            lambda b, s: multiclass_nms(b, s, None, 30.0, -1, top, 0.3, background_label=1), boxes, scores
        )
        assert made[0].shape == [len(wanted), 6]
        np.testing.assert_allclose(made[0].numpy(), np.asarray(wanted, "float32").reshape(-1, 6))
        assert (made[1].tolist(), made[2].tolist()) == (numbers, counts)


def test_no_box_is_above_the_score():
    assert same_in_a_program(lambda b: ops.nms(b, 0.5), boxes_of(0)).tolist() == []
    boxes, scores = boxes_of(4)[None], np.zeros((1, 2, 4), "float32")
    for function in (
        lambda b, s: multiclass_nms(b, s, None, 0.5),
        lambda b, s: ops.matrix_nms(b, s, 0.5, 0.1, -1, -1, return_index=True),
    ):
        made = same_in_a_program(function, boxes, scores)
        assert sorted(part.shape for part in made) == [[0, 1], [0, 6], [1]]
    with pytest.raises(NotImplementedError, match="nms_eta below 1"):
        multiclass_nms(boxes, scores, nms_eta=0.5)


def between(image, y, x):
    """Read an image [h, w] between pixels as RoIAlign does."""
    h, w = image.shape
    if not (-1 <= y <= h and -1 <= x <= w):
        return 0.0
    y, x = min(max(y, 0), h - 1), min(max(x, 0), w - 1)
    top, left = int(y), int(x)
    down, right = min(top + 1, h - 1), min(left + 1, w - 1)
    fy, fx = y - top, x - left
    above = image[top, left] * (1 - fx) + image[top, right] * fx
    return above * (1 - fy) + (image[down, left] * (1 - fx) + image[down, right] * fx) * fy


@pytest.mark.parametrize("ratio", [-1, 2])
@pytest.mark.parametrize("aligned", [True, False])
def test_regions_are_read_between_pixels(ratio, aligned):
    x = RNG.normal(size=[2, 3, 8, 9]).astype("float32")
    boxes, counts = boxes_of(5, 16.0), np.array([2, 3], "int32")
    made = same_in_a_program(lambda x, b, n: ops.roi_align(x, b, n, (2, 3), 0.5, ratio, aligned), x, boxes, counts)
    wanted = np.zeros([5, 3, 2, 3])
    for r, image in enumerate([0, 0, 1, 1, 1]):
        x1, y1, x2, y2 = boxes[r] * 0.5 - (0.5 if aligned else 0)
        tall, wide = (y2 - y1, x2 - x1) if aligned else (max(y2 - y1, 1), max(x2 - x1, 1))
        down, right = (ratio, ratio) if ratio > 0 else (math.ceil(tall / 2), math.ceil(wide / 3))
        for c, i, j in np.ndindex(3, 2, 3):
            values = [
                between(x[image, c], y1 + (i + (a + 0.5) / down) * tall / 2, x1 + (j + (b + 0.5) / right) * wide / 3)
                for a, b in np.ndindex(down, right)
            ]
            wanted[r, c, i, j] = np.mean(values)
    np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-4, atol=1e-5)
    layer = ops.RoIAlign((2, 3), 0.5)
    np.testing.assert_allclose(
        layer(x, boxes, counts).numpy(), ops.roi_align(x, boxes, counts, (2, 3), 0.5).numpy(), rtol=1e-6
    )


def test_gradients_of_regions():
    x = paddle.to_tensor(np.zeros([1, 1, 4, 4], "float32"), stop_gradient=False)
    ops.roi_align(x, paddle.to_tensor([[0.0, 0, 4, 4]]), paddle.to_tensor([1]), 1).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.full([1, 1, 4, 4], 1 / 16), rtol=1e-6)


def test_largest_pixels_of_regions():
    x = RNG.normal(size=[1, 2, 8, 8]).astype("float32")
    boxes = np.array([[0, 0, 7, 7], [1.2, 2.6, 4, 6]], "float32")
    made = same_in_a_program(lambda x, b, n: ops.roi_pool(x, b, n, 2), x, boxes, np.array([2], "int32"))
    np.testing.assert_allclose(made.numpy()[0, 0], x[0, 0].reshape(2, 4, 2, 4).max((1, 3)), rtol=1e-6)
    inner = x[0, :, 3:7, 1:5]  # rows round(2.6) to 6, columns round(1.2) to 4
    np.testing.assert_allclose(made.numpy()[1], inner.reshape(2, 2, 2, 2, 2).max((2, 4)), rtol=1e-6)
    assert ops.RoIPool(2)(x, boxes, np.array([2])).tolist() == made.tolist()
    halves, whole = (np.array([[*low, 6, 6]], "float32") for low in ([0.5, 2.5], [1, 3]))  # halves away from zero
    assert ops.roi_pool(x, halves, np.array([1]), 2).tolist() == ops.roi_pool(x, whole, np.array([1]), 2).tolist()
    outside = ops.roi_pool(x, np.array([[20, 20, 22, 22]], "float32"), np.array([1]), 2)
    assert outside.tolist() == np.zeros([1, 2, 2, 2]).tolist()


def test_means_over_channels_of_their_own():
    x = RNG.normal(size=[1, 8, 4, 4]).astype("float32")
    boxes = np.array([[0, 0, 3, 3]], "float32")
    made = same_in_a_program(lambda x, b, n: ops.psroi_pool(x, b, n, 2), x, boxes, np.array([1], "int32"))
    parts = x.reshape(1, 2, 2, 2, 2, 2, 2, 2).mean((5, 7))  # image, channel, its row and column, row, column
    wanted = [[[parts[0, c, i, j, i, j] for j in (0, 1)] for i in (0, 1)] for c in (0, 1)]
    np.testing.assert_allclose(made.numpy()[0], wanted, rtol=1e-5)
    assert ops.PSRoIPool(2)(x, boxes, np.array([1])).tolist() == made.tolist()
    halves, whole = (np.array([[*low, 2, 2]], "float32") for low in ([0.5, -0.5], [1, -1]))
    assert ops.psroi_pool(x, halves, np.array([1]), 2).tolist() == ops.psroi_pool(x, whole, np.array([1]), 2).tolist()
    with pytest.raises(ValueError, match="8 channels do not divide into parts of 3 x 3"):
        ops.psroi_pool(x, boxes, np.array([1]), 3)


def test_without_offsets_it_is_the_convolution():
    x, weight = RNG.normal(size=[2, 4, 6, 7]).astype("float32"), RNG.normal(size=[6, 2, 3, 2]).astype("float32")
    how = dict(stride=[2, 1], padding=1, dilation=[1, 2], groups=2)
    wanted = paddle.nn.functional.conv2d(paddle.to_tensor(x), paddle.to_tensor(weight), **how)
    offset = np.zeros([2, 2 * 2 * 6, *wanted.shape[2:]], "float32")
    made = same_in_a_program(lambda x, o, w: ops.deform_conv2d(x, o, w, deformable_groups=2, **how), x, offset, weight)
    np.testing.assert_allclose(made.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)
    mask = np.full([2, 2 * 6, *wanted.shape[2:]], 0.5, "float32")
    halved = ops.deform_conv2d(x, offset, paddle.to_tensor(weight), None, deformable_groups=2, mask=mask, **how)
    np.testing.assert_allclose(halved.numpy(), wanted.numpy() / 2, rtol=1e-4, atol=1e-5)


def test_offsets_move_what_is_read():
    x = RNG.normal(size=[1, 1, 5, 5]).astype("float32")
    offset = np.zeros([1, 2, 5, 5], "float32")
    offset[:, 0], offset[:, 1] = 1.0, -0.5  # down one, left a half
    made = ops.deform_conv2d(x, offset, paddle.ones([1, 1, 1, 1])).numpy()[0, 0]
    padded = np.pad(x[0, 0], ((0, 1), (1, 0)))
    np.testing.assert_allclose(made, (padded[1:, :-1] + padded[1:, 1:]) / 2, rtol=1e-5, atol=1e-6)
    layer = ops.DeformConv2D(1, 2, 1)
    wanted = made[None, None] * layer.weight.numpy().reshape(1, 2, 1, 1) + layer.bias.numpy().reshape(1, 2, 1, 1)
    np.testing.assert_allclose(
        layer(paddle.to_tensor(x), paddle.to_tensor(offset)).numpy(), wanted, rtol=1e-4, atol=1e-6
    )
    tensor = paddle.to_tensor(offset, stop_gradient=False)
    ops.deform_conv2d(x, tensor, paddle.ones([1, 1, 1, 1])).sum().backward()
    np.testing.assert_allclose(tensor.grad.numpy()[0, 1, 1, 1:], x[0, 0, 2, 1:] - x[0, 0, 2, :-1], rtol=1e-4, atol=1e-5)


def test_codes_of_boxes():
    priors, targets = boxes_of(4), boxes_of(3)
    spread = np.array([0.1, 0.1, 0.2, 0.2], "float32")
    codes = ops.box_coder(priors, spread, targets).numpy()
    side, box = priors[1, 2:] - priors[1, :2], targets[2]
    middle = ((box[:2] + box[2:]) / 2 - (priors[1, :2] + priors[1, 2:]) / 2) / side / 0.1
    np.testing.assert_allclose(codes[2, 1], [*middle, *(np.log((box[2:] - box[:2]) / side) / 0.2)], rtol=1e-4)
    back = ops.box_coder(priors, spread, codes, "decode_center_size")
    np.testing.assert_allclose(back.numpy(), np.broadcast_to(targets[:, None], [3, 4, 4]), rtol=1e-4, atol=1e-5)
    turned = ops.box_coder(priors, None, codes.transpose(1, 0, 2) * spread, "decode_center_size", axis=1)
    np.testing.assert_allclose(turned.numpy(), back.numpy().transpose(1, 0, 2), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="code_type is encode_center_size or"):
        ops.box_coder(priors, spread, targets, "other")


def test_priors_of_a_map():
    image, features = paddle.zeros([1, 3, 10, 20]), paddle.zeros([1, 2, 2, 4])
    made, variances = ops.prior_box(features, image, [2.0], [8.0], [2.0], flip=True, clip=True)
    assert made.shape == variances.shape == [2, 4, 4, 4]
    root = math.sqrt(2.0)
    sides = [(2, 2), (2 * root, 2 / root), (2 / root, 2 * root), (4, 4)]
    wanted = [[(2.5 - w / 2) / 20, (7.5 - h / 2) / 10, (2.5 + w / 2) / 20, (7.5 + h / 2) / 10] for w, h in sides]
    np.testing.assert_allclose(made.numpy()[1, 0], wanted, rtol=1e-5)
    np.testing.assert_allclose(variances.numpy()[1, 3, 2], [0.1, 0.1, 0.2, 0.2])
    ordered, _ = ops.prior_box(features, image, [2.0], [8.0], [2.0], flip=True, min_max_aspect_ratios_order=True)
    np.testing.assert_allclose(ordered.numpy()[1, 0], [wanted[i] for i in (0, 3, 1, 2)], rtol=1e-5)


def test_boxes_of_a_map_of_yolo():
    x = RNG.normal(size=[1, 2 * 7, 2, 3]).astype("float32")
    size, anchors = np.array([[64, 96]], "int32"), [10, 13, 16, 30]
    made = same_in_a_program(lambda x, s: ops.yolo_box(x, s, anchors, 2, 0.4, 32, scale_x_y=1.1), x, size)
    boxes, scores = (m.numpy() for m in made)
    assert boxes.shape == (1, 12, 4)
    for a, i, j in np.ndindex(2, 2, 3):
        tx, ty, tw, th, to, *classes = x[0].reshape(2, 7, 2, 3)[a, :, i, j]
        sure = 1 / (1 + np.exp(-to))
        mx, my = ((1.1 / (1 + np.exp(-t)) - 0.05 + g) * e for t, g, e in ((tx, j, 96 / 3), (ty, i, 64 / 2)))
        w, h = np.exp(tw) * anchors[2 * a], np.exp(th) * anchors[2 * a + 1]
        box = [max(mx - w / 2, 0), max(my - h / 2, 0), min(mx + w / 2, 95), min(my + h / 2, 63)]
        at = a * 6 + i * 3 + j
        np.testing.assert_allclose(boxes[0, at], box if sure >= 0.4 else [0] * 4, rtol=1e-4, atol=1e-4)
        wanted = sure / (1 + np.exp(-np.array(classes))) if sure >= 0.4 else [0, 0]
        np.testing.assert_allclose(scores[0, at], wanted, rtol=1e-4)
    aware = np.concatenate([np.full([1, 2, 2, 3], 100.0, "float32"), x], 1)
    _, surer = ops.yolo_box(aware, size, anchors, 2, 0.0, 32, iou_aware=True)
    sure = 1 / (1 + np.exp(-x[0, 4, 0, 0]))
    np.testing.assert_allclose(surer.numpy()[0, 0], np.sqrt(sure) / (1 + np.exp(-x[0, 5:7, 0, 0])), rtol=1e-4)


def test_regions_go_to_levels():
    sides = np.array([10, 100, 224, 500, 60], "float32")
    rois = np.stack([sides * 0, sides * 0, sides, sides], 1)
    levels, place, counts = ops.distribute_fpn_proposals(rois, 2, 5, 4, 224, rois_num=np.array([3, 2], "int32"))
    assert [r.numpy()[:, 2].tolist() for r in levels] == [[10, 100, 60], [], [224], [500]]
    together = np.concatenate([r.numpy() for r in levels])
    assert together[place.numpy()[:, 0]].tolist() == rois.tolist()
    assert [c.tolist() for c in counts] == [[2, 1], [0, 0], [1, 0], [0, 1]]


def test_the_best_regions_of_a_map():
    anchors = np.array([[[[0, 0, 4, 4]], [[0, 0, 4, 3.9]], [[6, 6, 20, 9]], [[1, 1, 1.5, 8]]]], "float32")
    scores = np.array([0.5, 0.9, 0.3, 0.8], "float32").reshape(1, 1, 1, 4)
    deltas = np.zeros([1, 4, 1, 4], "float32")
    deltas[0, 0, 0, 2] = 0.5  # moved right by half of its width, then cut at the image
    rois, best, counts = ops.generate_proposals(
        scores, deltas, paddle.to_tensor([[10.0, 18.0]]), anchors, np.ones_like(anchors), return_rois_num=True
    )
    np.testing.assert_allclose(rois.numpy(), [[0, 0, 4, 3.9], [13, 6, 18, 9]], rtol=1e-6)
    np.testing.assert_allclose(best.numpy(), [[0.9], [0.3]])
    assert counts.tolist() == [2]
    with pytest.raises(ValueError, match=r"eta=0\.9 is not here"):
        ops.generate_proposals(scores, deltas, [[1, 1]], anchors, anchors, eta=0.9)
