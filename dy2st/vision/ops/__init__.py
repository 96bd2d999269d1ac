"""`paddle.vision.ops`: operations of detectors: boxes coded and suppressed, regions pooled, deformable convolution.

They are made of functions on tensors, so they are differentiated, traced and saved like those.
"""

from dy2st.missing import missing_in
from dy2st.vision.ops.boxes import box_coder, prior_box, yolo_box
from dy2st.vision.ops.deformable import DeformConv2D, deform_conv2d
from dy2st.vision.ops.proposals import distribute_fpn_proposals, generate_proposals
from dy2st.vision.ops.regions import PSRoIPool, RoIAlign, RoIPool, psroi_pool, roi_align, roi_pool
from dy2st.vision.ops.suppression import matrix_nms, nms

__getattr__ = missing_in(__name__)

__all__ = [
    "DeformConv2D", "PSRoIPool", "RoIAlign", "RoIPool", "box_coder", "deform_conv2d", "distribute_fpn_proposals",
    "generate_proposals", "matrix_nms", "nms", "prior_box", "psroi_pool", "roi_align", "roi_pool", "yolo_box",
]  # fmt: skip
