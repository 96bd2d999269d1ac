"""`paddle.vision.transforms`: images cropped, flipped, resized, recoloured, as functions and as classes with chance."""

from dy2st.missing import missing_in
from dy2st.vision.transforms.functional import (
    adjust_brightness,
    adjust_contrast,
    adjust_hue,
    adjust_saturation,
    affine,
    center_crop,
    crop,
    erase,
    hflip,
    normalize,
    pad,
    perspective,
    resize,
    rotate,
    to_grayscale,
    to_tensor,
    vflip,
)
from dy2st.vision.transforms.transforms import (
    BaseTransform,
    BrightnessTransform,
    CenterCrop,
    ColorJitter,
    Compose,
    ContrastTransform,
    Grayscale,
    HueTransform,
    Normalize,
    Pad,
    RandomAffine,
    RandomCrop,
    RandomErasing,
    RandomHorizontalFlip,
    RandomPerspective,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
    Resize,
    SaturationTransform,
    ToTensor,
    Transpose,
)

__getattr__ = missing_in(__name__)

__all__ = [
    "BaseTransform", "BrightnessTransform", "CenterCrop", "ColorJitter", "Compose", "ContrastTransform", "Grayscale",
    "HueTransform", "Normalize", "Pad", "RandomAffine", "RandomCrop", "RandomErasing", "RandomHorizontalFlip",
    "RandomPerspective", "RandomResizedCrop", "RandomRotation", "RandomVerticalFlip", "Resize", "SaturationTransform",
    "ToTensor", "Transpose", "adjust_brightness", "adjust_contrast", "adjust_hue", "adjust_saturation", "affine",
    "center_crop", "crop", "erase", "hflip", "normalize", "pad", "perspective", "resize", "rotate", "to_grayscale",
    "to_tensor", "vflip",
]  # fmt: skip
