"""What Paddle keeps under `incubate`: derivatives of functions in `incubate.autograd`, fused steps in `incubate.nn`."""

from dy2st.geometric import segment_max, segment_mean, segment_min, segment_sum
from dy2st.geometric import send_u_recv as graph_send_recv
from dy2st.incubate import autograd
from dy2st.incubate.averages import LookAhead, ModelAverage
from dy2st.incubate.masked_softmax import identity_loss, softmax_mask_fuse, softmax_mask_fuse_upper_triangle
from dy2st.incubate.switches import inference, is_inference_mode
from dy2st.missing import missing_in

__getattr__ = missing_in(__name__)

__all__ = [
    "LookAhead", "ModelAverage", "autograd", "graph_send_recv", "identity_loss", "inference", "is_inference_mode",
    "segment_max", "segment_mean", "segment_min", "segment_sum", "softmax_mask_fuse",
    "softmax_mask_fuse_upper_triangle",
]  # fmt: skip
