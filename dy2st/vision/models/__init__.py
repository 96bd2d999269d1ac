"""Networks for images, with random parameters: nothing is downloaded. Names in their state are Paddle's."""

from typing import TYPE_CHECKING

from dy2st.late import late_names

if TYPE_CHECKING:
    from dy2st.vision.models.lenet import LeNet
    from dy2st.vision.models.mobilenet import MobileNetV2, mobilenet_v2
    from dy2st.vision.models.resnet import ResNet, resnet18, resnet34, resnet50, resnet101, resnet152
    from dy2st.vision.models.vgg import VGG, vgg11, vgg13, vgg16, vgg19

__getattr__ = late_names(
    __name__,
    {
        "lenet": "LeNet",
        "mobilenet": "MobileNetV2 mobilenet_v2",
        "resnet": "ResNet resnet18 resnet34 resnet50 resnet101 resnet152",
        "vgg": "VGG vgg11 vgg13 vgg16 vgg19",
    },
)

__all__ = [
    "VGG",
    "LeNet",
    "MobileNetV2",
    "ResNet",
    "mobilenet_v2",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
    "vgg11",
    "vgg13",
    "vgg16",
    "vgg19",
]


def __dir__() -> list[str]:
    return __all__
