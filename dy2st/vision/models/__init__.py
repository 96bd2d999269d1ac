"""Networks for images, with random parameters: nothing is downloaded. Names in their state are Paddle's."""

from dy2st.missing import missing_in
from dy2st.vision.models.lenet import LeNet
from dy2st.vision.models.mobilenet import MobileNetV2, mobilenet_v2
from dy2st.vision.models.resnet import ResNet, resnet18, resnet34, resnet50, resnet101, resnet152
from dy2st.vision.models.vgg import VGG, vgg11, vgg13, vgg16, vgg19

__getattr__ = missing_in(__name__)
