"""`paddle.vision`: models, datasets and transforms for images, operations of detectors."""

from importlib import import_module
from typing import Any

from dy2st.missing import missing_in
from dy2st.vision import models, ops, transforms
from dy2st.vision.image import get_image_backend, image_load, set_image_backend

_missing = missing_in(__name__)
_DATASETS = ("MNIST", "FashionMNIST", "Cifar10", "Cifar100", "Flowers", "VOC2012", "DatasetFolder", "ImageFolder")


def __getattr__(name: str) -> Any:
    if name in _DATASETS:
        return getattr(import_module("dy2st.vision.datasets"), name)
    for module in (transforms, models):
        if name in module.__all__:
            return getattr(module, name)
    return _missing(name)


__all__ = ["get_image_backend", "image_load", "models", "ops", "set_image_backend", "transforms"]
