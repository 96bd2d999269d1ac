"""Transforms of images: values by hand, by NumPy, and by what must stay the same."""

import random

import numpy as np
import pytest

import dy2st as paddle
from dy2st.vision import transforms as T
from dy2st.vision.transforms import functional as F

IMAGE = np.arange(2 * 3 * 3, dtype="uint8").reshape(2, 3, 3) * 10


@pytest.fixture(autouse=True)
def seeded():
    random.seed(3)
    np.random.seed(3)


def test_an_image_becomes_a_tensor():
    made = T.ToTensor()(IMAGE)
    np.testing.assert_allclose(made.numpy(), IMAGE.transpose(2, 0, 1).astype("float32") / 255, rtol=1e-7)
    assert F.to_tensor(IMAGE[..., 0], "HWC").shape == [2, 3, 1]
    assert F.to_tensor(IMAGE.astype("float64")).numpy().max() == 170.0
    with pytest.raises(ValueError, match="data_format must be CHW or HWC, not 'NCHW'"):
        F.to_tensor(IMAGE, "NCHW")


def test_channels_are_normalized():
    mean, std = [1.0, 2.0, 3.0], [2.0, 4.0, 8.0]
    wanted = (IMAGE.astype("float32") - np.float32(mean)) / np.float32(std)
    np.testing.assert_allclose(T.Normalize(mean, std, "HWC")(IMAGE), wanted, rtol=1e-6)
    chw = IMAGE.transpose(2, 0, 1).astype("float32")
    np.testing.assert_allclose(
        F.normalize(paddle.to_tensor(chw), mean, std).numpy(), wanted.transpose(2, 0, 1), rtol=1e-6
    )
    turned = F.normalize(IMAGE, mean, std, "HWC", to_rgb=True)
    np.testing.assert_allclose(turned, (IMAGE[..., ::-1] - np.float32(mean)) / np.float32(std), rtol=1e-6)


@pytest.mark.parametrize(
    ("interpolation", "wanted"),
    [
        ("nearest", [0, 0, 100, 100]),
        ("bilinear", [0, 25, 75, 100]),
        ("bicubic", [-10.55, 22.66, 77.34, 110.55]),  # shares -0.1055, 0.2617, -0.0352 of a = -0.75
    ],
)
def test_two_pixels_become_four(interpolation, wanted):
    row = np.array([[[0.0], [100.0]]])
    made = F.resize(row, (1, 4), interpolation)
    np.testing.assert_allclose(made[0, :, 0], wanted, atol=0.06)
    image = row.astype("uint8")
    assert F.resize(image, (1, 4), interpolation).dtype == np.uint8
    assert F.resize(image, (1, 4), interpolation).max() == min(round(max(wanted)), 255)


def test_areas_are_averaged_and_linear_images_stay_linear():
    image = np.arange(16.0).reshape(4, 4, 1)
    assert F.resize(image, (2, 2), "area")[..., 0].tolist() == [[2.5, 4.5], [10.5, 12.5]]
    assert F.resize(image, (2, 2))[..., 0].tolist() == [[2.5, 4.5], [10.5, 12.5]]
    assert T.Resize(2)(np.zeros([4, 6, 3])).shape == (2, 3, 3)
    assert T.Resize(2)(np.zeros([6, 4, 3])).shape == (3, 2, 3)
    assert F.resize(paddle.zeros([2, 3, 4, 6]), (2, 2)).shape == [2, 3, 2, 2]
    with pytest.raises(ValueError, match="nearest, bilinear, bicubic or area, not 'lanczos'"):
        F.resize(image, (2, 2), "lanczos")


def test_parts_of_an_image():
    assert F.crop(IMAGE, 1, 1, 1, 2).tolist() == IMAGE[1:2, 1:3].tolist()
    assert T.CenterCrop(1)(IMAGE).tolist() == IMAGE[0:1, 1:2].tolist()
    assert F.hflip(IMAGE).tolist() == IMAGE[:, ::-1].tolist()
    assert F.vflip(IMAGE[..., 0]).tolist() == IMAGE[::-1, :, 0].tolist()
    assert T.Transpose()(IMAGE).tolist() == IMAGE.transpose(2, 0, 1).tolist()
    chw = paddle.to_tensor(IMAGE.transpose(2, 0, 1))
    assert F.hflip(chw).tolist() == IMAGE.transpose(2, 0, 1)[..., ::-1].tolist()
    assert F.pad(IMAGE, (1, 0, 0, 1), fill=(1, 2, 3))[2, 0].tolist() == [1, 2, 3]
    assert T.Pad(1, padding_mode="edge")(IMAGE)[0, 0].tolist() == IMAGE[0, 0].tolist()
    assert F.pad(IMAGE, (2, 1)).shape == (4, 7, 3)
    erased = F.erase(IMAGE, 0, 1, 2, 1, 7)
    assert (erased[:, 1] == 7).all()
    assert IMAGE[0, 1, 0] == 30
    assert F.erase(chw, 0, 1, 2, 1, 7).numpy()[:, :, 1].tolist() == [[7, 7]] * 3


def test_an_image_is_turned():
    square = np.arange(9.0).reshape(3, 3, 1)
    turned = F.rotate(square, 90, center=(1, 1))
    assert turned[..., 0].tolist() == np.rot90(square[..., 0]).tolist()
    assert F.rotate(np.zeros([2, 4, 1]), 90, expand=True).shape == (4, 2, 1)
    moved = F.affine(square, 0, (1, 0), 1.0, 0)
    assert moved[..., 0].tolist() == [[0, 0, 1], [0, 3, 4], [0, 6, 7]]
    assert F.affine(square, -90, (0, 0), 1.0, (0, 0), center=(1, 1)).tolist() == turned.tolist()
    corners = [(0, 0), (2, 0), (2, 2), (0, 2)]
    flipped = F.perspective(square, corners, [(2, 0), (0, 0), (0, 2), (2, 2)], "bilinear")
    np.testing.assert_allclose(flipped, square[:, ::-1], atol=1e-9)


def test_colours_are_changed():
    pixel = np.array([[[10, 100, 200]]], "uint8")  # blue, green, red
    grey = 0.114 * 10 + 0.587 * 100 + 0.299 * 200
    assert F.adjust_brightness(pixel, 1.5).tolist() == [[[15, 150, 255]]]
    assert F.adjust_contrast(pixel, 0.5).tolist() == [[[42, 87, 137]]]
    assert F.adjust_saturation(pixel, 0.5).tolist() == [[[int((c + grey) / 2) for c in (10, 100, 200)]]]
    assert F.to_grayscale(pixel, 3).tolist() == [[[round(grey)] * 3]]
    assert F.adjust_hue(pixel, 0.0).tolist() == pixel.tolist()
    assert F.adjust_hue(np.array([[[0, 0, 255]]], "uint8"), 1 / 3).tolist() == [[[0, 255, 0]]]  # red becomes green
    red = paddle.to_tensor([[[1.0]], [[0.0]], [[0.0]]])
    assert F.adjust_hue(red, 0.5).numpy().ravel().tolist() == [0.0, 1.0, 1.0]
    np.testing.assert_allclose(F.adjust_contrast(red, 0.0).numpy().ravel(), [0.299] * 3, rtol=1e-6)
    with pytest.raises(ValueError, match=r"hue_factor must be from -0\.5 to 0\.5, not 0\.6"):
        F.adjust_hue(pixel, 0.6)


def test_chance_of_nothing_and_of_everything():
    assert T.RandomHorizontalFlip(1.0)(IMAGE).tolist() == IMAGE[:, ::-1].tolist()
    assert T.RandomVerticalFlip(0.0)(IMAGE).tolist() == IMAGE.tolist()
    assert T.RandomCrop((2, 3))(IMAGE).tolist() == IMAGE.tolist()
    assert T.RandomCrop(4, pad_if_needed=True)(IMAGE).shape == (4, 4, 3)
    assert T.RandomResizedCrop(4, scale=(1.0, 1.0), ratio=(1.5, 1.5))(IMAGE).shape == (4, 4, 3)
    assert T.RandomResizedCrop((2, 3), scale=(1.0, 1.0), ratio=(1.5, 1.5))(IMAGE).tolist() == IMAGE.tolist()
    assert T.RandomRotation(0)(IMAGE).tolist() == IMAGE.tolist()
    assert T.RandomAffine(0)(IMAGE).tolist() == IMAGE.tolist()
    assert T.RandomPerspective(1.0, 0.0)(IMAGE).tolist() == IMAGE.tolist()
    assert T.RandomErasing(0.0)(IMAGE).tolist() == IMAGE.tolist()
    assert T.ColorJitter()(IMAGE).tolist() == IMAGE.tolist()
    assert T.ColorJitter((2.0, 2.0))(IMAGE).tolist() == F.adjust_brightness(IMAGE, 2.0).tolist()
    with pytest.raises(ValueError, match="is larger than the image"):
        T.RandomCrop(4)(IMAGE)
    with pytest.raises(ValueError, match=r"HueTransform: values must be from -0\.5 to 0\.5"):
        T.HueTransform(0.7)


def test_erasing_keeps_the_rest():
    big = np.full([20, 20, 3], 9, "uint8")
    made = T.RandomErasing(1.0, value=1)(big)
    assert 0.02 * 400 * 0.5 < (made[..., 0] == 1).sum() < 0.33 * 400 * 1.5
    assert set(np.unique(made)) == {1, 9}
    noisy = T.RandomErasing(1.0, value="random")(paddle.ones([3, 20, 20]))
    assert (noisy.numpy() != 1).any()


def test_what_stands_beside_an_image():
    class Shift(T.BaseTransform):
        def _get_params(self, inputs):
            return 1

        def _apply_image(self, img):
            return img + self.params

        def _apply_boxes(self, boxes):
            return [b + self.params for b in boxes]

    assert Shift(["image", "boxes"])((1, [2], "label")) == (2, [3], "label")
    with pytest.raises(NotImplementedError, match="Shift has no _apply_mask for the key 'mask'"):
        Shift(["mask"])
    assert "Grayscale" in repr(T.Compose([T.Grayscale()]))
