"""What is done to one image: an array [height, width, channels], a tensor [..., channels, height, width], or PIL's.

An image comes back as what it was. Colours of arrays are blue, green, red, as OpenCV reads them and Paddle takes them;
of tensors and of PIL's images red, green, blue. Arrays of 8 bits are rounded and stay within 0 to 255.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from dy2st.functions.shape.from_data import to_tensor as tensor_of
from dy2st.late import types_of
from dy2st.runtime.eager.tensor import Tensor
from dy2st.vision.transforms import warping

_GREY = np.array([0.299, 0.587, 0.114])
_CONTRAST_MIDDLE = 74  # Paddle's, of arrays


def is_pil(image: Any) -> bool:
    """Return whether an image is one of PIL's."""
    return isinstance(image, types_of("PIL.Image:Image"))


def size_of(image: Any) -> tuple[int, int]:
    """Return (width, height)."""
    if is_pil(image):
        return image.size
    height, width = image.shape[-2:] if isinstance(image, Tensor) else image.shape[:2]
    return int(width), int(height)


def is_tensor(image: Any) -> bool:
    """Return whether an image is a tensor."""
    return isinstance(image, Tensor)


def is_array(image: Any) -> bool:
    """Return whether an image is an array of 2 or 3 axes."""
    return isinstance(image, np.ndarray) and image.ndim in (2, 3)


# names that projects import
_is_pil_image, _is_tensor_image, _is_numpy_image, _get_image_size = is_pil, is_tensor, is_array, size_of


def _on_arrays(change: Callable[..., np.ndarray]) -> Callable[..., Any]:
    """Let a function of [height, width, channels] take any image, and return what it was given."""

    @functools.wraps(change)
    def changed(img: Any, *args: Any, **keywords: Any) -> Any:
        if is_pil(img):
            mode, array = img.mode, np.asarray(img)
            made = change(array if array.ndim == 3 else array[..., None], *args, **keywords)
            image = type_of_pil().fromarray(made[..., 0] if made.shape[2] == 1 else made)
            return image if made.shape[2] != len(mode) else image.convert(mode)
        if isinstance(img, Tensor):
            array = img.numpy()
            flat = array.reshape(-1, *array.shape[-3:]).transpose(0, 2, 3, 1)
            made = np.stack([change(a, *args, **keywords) for a in flat]).transpose(0, 3, 1, 2)
            return tensor_of(made.reshape(*array.shape[:-3], *made.shape[1:]))
        if not isinstance(img, np.ndarray) or img.ndim not in (2, 3):
            raise TypeError(
                f"{change.__name__}: an image is an array of 2 or 3 axes, a Tensor or PIL's, not {img!r:.60}"
            )
        made = change(img if img.ndim == 3 else img[..., None], *args, **keywords)
        return made if img.ndim == 3 else made[..., 0]

    return changed


def type_of_pil() -> Any:
    """Return PIL's module of images."""
    return import_module("PIL.Image")


def _in_rgb(change: Callable[..., np.ndarray]) -> Callable[..., Any]:
    """Give a function of colours red, green, blue: of arrays they come as blue, green, red."""
    plain = _on_arrays(change)

    @functools.wraps(change)
    def changed(img: Any, *args: Any, **keywords: Any) -> Any:
        if isinstance(img, np.ndarray) and img.ndim == 3:
            return plain(img[..., ::-1], *args, **keywords)[..., ::-1]
        return plain(img, *args, **keywords)

    return changed


def to_tensor(pic: Any, data_format: str = "CHW") -> Tensor:
    """Return an image as a tensor: of 8 bits as float32 from 0 to 1, others as they are.

    >>> import numpy as np
    >>> to_tensor(np.full([2, 3, 1], 255, "uint8")).shape
    [1, 2, 3]
    """
    if data_format not in ("CHW", "HWC"):
        raise ValueError(f"to_tensor: data_format must be CHW or HWC, not {data_format!r}")
    if isinstance(pic, Tensor):
        return pic
    array = np.asarray(pic)
    array = array[..., None] if array.ndim == 2 else array
    array = array.astype("float32") / np.float32(255) if array.dtype == np.uint8 else array
    return tensor_of(np.ascontiguousarray(array.transpose(2, 0, 1) if data_format == "CHW" else array))


def normalize(img: Any, mean: Any, std: Any, data_format: str = "CHW", to_rgb: bool = False) -> Any:
    """Return (img - mean) / std by channels; of arrays with `to_rgb` the channels are turned round first.

    >>> import dy2st as paddle
    >>> normalize(paddle.ones([1, 1, 2]), [0.5], [0.25]).tolist()
    [[[2.0, 2.0]]]
    """
    shape = [-1, 1, 1] if data_format == "CHW" else [1, 1, -1]
    if isinstance(img, Tensor):
        mean, std = (np.asarray(m, "float32").reshape(shape) for m in (mean, std))
        return (img - tensor_of(mean)) / tensor_of(std)
    array = np.asarray(img).astype("float32")
    if to_rgb:
        array = array[..., ::-1] if data_format == "HWC" else array[::-1]
    return (array - np.asarray(mean, "float32").reshape(shape)) / np.asarray(std, "float32").reshape(shape)


def resize(img: Any, size: Any, interpolation: str = "bilinear") -> Any:
    """Return an image of (height, width), or whose shorter side is `size`; PIL's images by PIL's own ways.

    >>> import numpy as np
    >>> resize(np.zeros([4, 8, 3], "uint8"), 2).shape
    (2, 4, 3)
    """
    width, height = size_of(img)
    if isinstance(size, int):
        size = (int(size * height / width), size) if width < height else (size, int(size * width / height))
    if len(size) != 2:
        raise TypeError(f"resize: size is an int or (height, width), not {size!r}")
    if is_pil(img):
        return img.resize((size[1], size[0]), getattr(type_of_pil().Resampling, interpolation.upper()))
    return img if tuple(size) == (height, width) else _resize(img, size[0], size[1], interpolation)


_resize = _on_arrays(warping.resized)


@_on_arrays
def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """Return the part of an image from row `top` and column `left` on."""
    return img[top : top + height, left : left + width]


def center_crop(img: Any, output_size: Any) -> Any:
    """Return the middle of an image, of (height, width) or a square."""
    height, width = (output_size, output_size) if isinstance(output_size, (int, float)) else output_size
    w, h = size_of(img)
    return crop(img, round((h - int(height)) / 2.0), round((w - int(width)) / 2.0), int(height), int(width))


@_on_arrays
def hflip(img: Any) -> Any:
    """Return an image with left and right changed."""
    return img[:, ::-1].copy()


@_on_arrays
def vflip(img: Any) -> Any:
    """Return an image upside down."""
    return img[::-1].copy()


@_on_arrays
def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """Return an image with a border: of one width, (left and right, top and bottom), or (left, top, right, bottom).

    `padding_mode` is constant (of `fill`), edge, reflect or symmetric.
    """
    if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError(f"pad: padding_mode must be constant, edge, reflect or symmetric, not {padding_mode!r}")
    widths = [padding] * 4 if isinstance(padding, int) else list(padding) * (2 if len(padding) == 2 else 1)
    if len(widths) != 4:
        raise ValueError(f"pad: padding is an int, or 2 or 4 of them, not {padding!r}")
    left, top, right, bottom = widths
    around = [(top, bottom), (left, right), (0, 0)]
    if padding_mode != "constant":
        return np.pad(img, around, padding_mode)  # type: ignore[call-overload]
    made = np.empty([img.shape[0] + top + bottom, img.shape[1] + left + right, img.shape[2]], img.dtype)
    made[...] = fill
    made[top : top + img.shape[0], left : left + img.shape[1]] = img
    return made


@_on_arrays
def rotate(
    img: Any, angle: float, interpolation: str = "nearest", expand: bool = False, center: Any = None, fill: Any = 0
) -> Any:
    """Return an image turned by degrees counter-clockwise; `expand` makes it as large as what is turned."""
    height, width = img.shape[:2]
    forward = warping.rotation(angle, center or (width / 2.0, height / 2.0))
    if expand:
        cos, sin = np.abs(forward[0, :2])
        size = int(height * cos + width * sin), int(height * sin + width * cos)
        forward[:2, 2] += (size[1] / 2 - width / 2, size[0] / 2 - height / 2)
        height, width = size
    return warping.warped(img, np.linalg.inv(forward), (height, width), interpolation, fill)


@_on_arrays
def affine(
    img: Any, angle: float, translate: Any, scale: float, shear: Any, interpolation: str = "nearest", fill: Any = 0,
    center: Any = None,
) -> Any:  # fmt: skip
    """Return an image sheared by degrees, turned clockwise and scaled around its centre, then moved by pixels."""
    height, width = img.shape[:2]
    shear = (shear, 0.0) if isinstance(shear, (int, float)) else shear
    forward = warping.affine_map(angle, translate, scale, shear, center or (width / 2.0, height / 2.0))
    return warping.warped(img, np.linalg.inv(forward), (height, width), interpolation, fill)


@_on_arrays
def perspective(
    img: Any, startpoints: Sequence[Any], endpoints: Sequence[Any], interpolation: str = "nearest", fill: Any = 0
) -> Any:
    """Return an image mapped so that four places (x, y) come to four others."""
    inverse = warping.perspective_map(endpoints, startpoints)
    return warping.warped(img, inverse, img.shape[:2], interpolation, fill)


def _most(img: np.ndarray) -> float:
    return 255.0 if img.dtype.kind in "iu" else 1.0


def _cut(values: np.ndarray, img: np.ndarray) -> np.ndarray:
    """Return values within an image's range, without their fractions where it has none."""
    return np.clip(values, 0, _most(img)).astype(img.dtype)


@_on_arrays
def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """Return an image times a factor: 0 is black."""
    return _cut(img * float(brightness_factor), img)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """Return an image whose distance from grey is times a factor: of arrays from 74, else from its mean grey."""
    if isinstance(img, np.ndarray):
        return _cut((img.astype("float64") - _CONTRAST_MIDDLE) * contrast_factor + _CONTRAST_MIDDLE, img)
    return _contrast(img, contrast_factor)


@_on_arrays
def _contrast(img: Any, factor: float) -> Any:
    middle = _grey(img).mean()
    return _cut((img - middle) * factor + middle, img)


def _grey(img: np.ndarray) -> np.ndarray:
    return (img[..., :3] @ _GREY)[..., None] if img.shape[2] >= 3 else img.astype("float64")


@_in_rgb
def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """Return an image whose distance from its greys is times a factor: 0 is grey."""
    grey = _grey(img)
    return _cut((img - grey) * saturation_factor + grey, img)


@_in_rgb
def adjust_hue(img: Any, hue_factor: float) -> Any:
    """Return an image whose colours are turned round by `hue_factor` (from -0.5 to 0.5) of the circle."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"adjust_hue: hue_factor must be from -0.5 to 0.5, not {hue_factor}")
    most, low, span, hue = _hue(img.astype("float64"))
    sector = ((hue + hue_factor) % 1.0) * 6.0
    # a channel is at its most for a third of the circle, and falls to the least within a sixth at each side
    shares = [np.clip(np.abs((sector - place) % 6.0 - 3.0) - 1.0, 0, 1) for place in (0.0, 2.0, 4.0)]
    made = np.stack([low + span * s for s in shares], -1)
    return warping.like(np.where(most[..., None] == low[..., None], img, made), img)


def _hue(img: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the largest and the smallest channel, their distance, and the hue from 0 to 1."""
    red, green, blue = np.moveaxis(img, -1, 0)
    most, low = img.max(-1), img.min(-1)
    span = most - low
    safe = np.where(span == 0, 1, span)
    beside = np.where(most == green, (blue - red) / safe + 2, (red - green) / safe + 4)
    sector = np.where(most == red, (green - blue) / safe % 6, beside)
    return most, low, span, sector / 6.0


def to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """Return an image of greys, in 1 or 3 channels."""
    if num_output_channels not in (1, 3):
        raise ValueError(f"to_grayscale: num_output_channels is 1 or 3, not {num_output_channels}")
    image = img[..., ::-1] if isinstance(img, np.ndarray) and img.ndim == 3 else img
    return _to_grey(image, num_output_channels)


@_on_arrays
def _to_grey(img: Any, channels: int) -> Any:
    return np.repeat(warping.like(_grey(img), img), channels, -1)


def erase(img: Any, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> Any:
    """Return an image whose part from row i and column j on has the values v."""
    if isinstance(img, Tensor):
        made = img if inplace else img.clone()
        made[..., i : i + h, j : j + w] = v
        return made
    array = img if inplace and isinstance(img, np.ndarray) else np.array(img)
    array[i : i + h, j : j + w] = v
    return type_of_pil().fromarray(array) if is_pil(img) else array
