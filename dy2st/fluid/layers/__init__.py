"""1.x's functions on tensors and variables, and the layers of hand-built Programs.

What makes parameters or control flow of hand-built Programs (`conv2d`, `cond`, ...) is that of `paddle.static.nn`.
"""

from __future__ import annotations

from dy2st.fluid.inputs import embedding
from dy2st.fluid.layers.arranging import (
    assign,
    expand,
    fill_constant,
    fill_constant_batch_size_like,
    flatten,
    gather,
    gaussian_random,
    matmul,
    mul,
    ones,
    ones_like,
    pad,
    range,
    reshape,
    scatter,
    slice,
    split,
    squeeze,
    uniform_random,
    unsqueeze,
    where,
    zeros,
    zeros_like,
)
from dy2st.fluid.layers.dense import fc
from dy2st.fluid.layers.dropping import dropout
from dy2st.fluid.layers.elementwise import (
    clip_by_norm,
    elementwise_add,
    elementwise_div,
    elementwise_floordiv,
    elementwise_max,
    elementwise_min,
    elementwise_mod,
    elementwise_mul,
    elementwise_pow,
    elementwise_sub,
    hard_sigmoid,
    has_inf,
    has_nan,
    leaky_relu,
    mean,
    pow,
    scale,
    sums,
)
from dy2st.fluid.layers.feeds import data
from dy2st.fluid.layers.losses import (
    cross_entropy,
    l2_normalize,
    mse_loss,
    one_hot,
    sigmoid_cross_entropy_with_logits,
    smooth_l1,
    softmax,
    softmax_with_cross_entropy,
)
from dy2st.fluid.layers.reduction import (
    accuracy,
    argmax,
    argmin,
    argsort,
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    topk,
)
from dy2st.fluid.layers.windows import pool2d, pool3d
from dy2st.functions.math.arithmetic import add_n as sum
from dy2st.functions.math.arithmetic import increment
from dy2st.functions.math.comparison import (
    equal,
    greater_equal,
    greater_than,
    is_empty,
    isfinite,
    less_equal,
    less_than,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
)
from dy2st.functions.math.math import (
    abs,
    ceil,
    clip,
    cos,
    erf,
    exp,
    floor,
    log,
    reciprocal,
    round,
    rsqrt,
    sign,
    sin,
    sqrt,
    square,
    tanh,
)
from dy2st.functions.math.reduction import cumsum
from dy2st.functions.math.search import unique
from dy2st.functions.shape.broadcasting import expand_as
from dy2st.functions.shape.concat_split import concat, stack, strided_slice, unstack
from dy2st.functions.shape.creation import eye, linspace, rank, shape
from dy2st.functions.shape.gather_scatter import gather_nd
from dy2st.functions.shape.manipulation import cast, reverse, transpose
from dy2st.nn.create_parameter import create_parameter
from dy2st.nn.functional.activation import (
    elu,
    gelu,
    relu,
    relu6,
    selu,
    sigmoid,
    softplus,
    softsign,
    swish,
)
from dy2st.nn.functional.activation import hardswish as hard_swish
from dy2st.nn.functional.activation import log_sigmoid as logsigmoid
from dy2st.nn.functional.classification import label_smooth
from dy2st.nn.functional.distance import cosine_similarity as cos_sim
from dy2st.nn.functional.loss import log_loss, square_error_cost
from dy2st.static import create_global_var
from dy2st.static.nn import batch_norm, case, cond, conv2d, conv2d_transpose, layer_norm, switch_case, while_loop
