"""Operations of a ProgramDesc under the names that PIR has for them, their operands in PIR's order.

A line of the table: what the ProgramDesc calls it, what PIR does, operands, results, attributes with another name:

    matmul_v2 = matmul: X Y -> Out; trans_x=transpose_x trans_y=transpose_y

An operand is a slot of the operation; `Slot*` is a list of values, `@name` an attribute; of `A|B|@c` the first that is
there. Lines without `=` have the same name in both. Results of a slot that the operation has not are not wanted.
"""

from __future__ import annotations

from typing import Any

from dy2st.errors import FileFormatError
from dy2st.paddle_files.graph import Block, Given, Operation
from dy2st.records import record

_SAME = """
    abs acos acosh asin asinh atan atanh bernoulli ceil celu channel_shuffle cos cosh digamma elu erf erfinv exp expm1
    floor gelu lgamma log log10 log1p log2 log_softmax logical_not logit logsigmoid mish relu relu6 round rsqrt selu
    sigmoid sign silu sin sinh softmax softplus softsign sqrt square stanh swish tan tanh tanh_shrink thresholded_relu
    trunc reciprocal pixel_shuffle pixel_unshuffle temporal_shift flip cumprod bitwise_not real imag conj assign unbind
    dropout cast logsumexp p_norm share_data
"""
_TABLE = """
    hard_shrink = hardshrink: X -> Out
    softshrink: X -> Out; lambda=threshold
    brelu = hardtanh: X -> Out
    hard_swish = hardswish: X -> Out
    hard_sigmoid = hardsigmoid: X -> Out
    leaky_relu: X -> Out; alpha=negative_slope
    maxout: X -> Out
    clip: X Min|@min Max|@max -> Out
    pow: X FactorTensor|@factor -> Out
    scale: X ScaleTensor|@scale -> Out
    prelu: X Alpha -> Out
    elementwise_add = add: X Y -> Out
    elementwise_sub = subtract: X Y -> Out
    elementwise_mul = multiply: X Y -> Out
    elementwise_div = divide: X Y -> Out
    elementwise_pow: X Y -> Out
    elementwise_floordiv = floor_divide: X Y -> Out
    elementwise_mod = remainder: X Y -> Out
    elementwise_max = maximum: X Y -> Out
    elementwise_min = minimum: X Y -> Out
    elementwise_fmax = fmax: X Y -> Out
    elementwise_fmin = fmin: X Y -> Out
    equal: X Y -> Out
    not_equal: X Y -> Out
    less_than: X Y -> Out
    less_equal: X Y -> Out
    greater_than: X Y -> Out
    greater_equal: X Y -> Out
    equal_all: X Y -> Out
    logical_and: X Y -> Out
    logical_or: X Y -> Out
    logical_xor: X Y -> Out
    bitwise_and: X Y -> Out
    bitwise_or: X Y -> Out
    bitwise_xor: X Y -> Out
    atan2: X1 X2 -> Out
    complex: X Y -> Out
    lerp: X Y Weight -> Out
    kron: X Y -> Out
    dot: X Y -> Out
    bmm: X Y -> Out
    mv: X Vec -> Out
    cross: X Y -> Out; dim=axis
    matmul_v2 = matmul: X Y -> Out; trans_x=transpose_x trans_y=transpose_y
    matmul = old_matmul: X Y -> Out
    mul = old_mul: X Y -> Out
    addmm: Input X Y -> Out; Alpha=alpha Beta=beta
    einsum: Operands* -> Out
    isnan_v2 = isnan: X -> Out
    isinf_v2 = isinf: X -> Out
    isfinite_v2 = isfinite: X -> Out
    sum = add_n: X* -> Out
    mean = mean_all: X -> Out
    reduce_sum = sum: X @dim -> Out; keep_dim=keepdim
    reduce_mean = mean: X @dim -> Out; keep_dim=keepdim
    reduce_max = max: X @dim -> Out; keep_dim=keepdim
    reduce_min = min: X @dim -> Out; keep_dim=keepdim
    reduce_amax = amax: X @dim -> Out; keep_dim=keepdim
    reduce_amin = amin: X @dim -> Out; keep_dim=keepdim
    reduce_prod = prod: X @dim -> Out; keep_dim=keepdim
    reduce_any = any: X -> Out; keep_dim=keepdim dim=axis
    reduce_all = all: X -> Out; keep_dim=keepdim dim=axis
    frobenius_norm: X -> Out; keep_dim=keepdim dim=axis
    norm: X -> Out Norm
    cumsum: X @axis -> Out
    trace: Input -> Out
    size = numel: Input -> Out
    arg_max = argmax: X @axis -> Out
    arg_min = argmin: X @axis -> Out
    argsort: X -> Out Indices
    kthvalue: X -> Out Indices
    mode: X -> Out Indices
    top_k_v2 = topk: X K|@k -> Out Indices
    top_k = topk: X K|@k -> Out Indices
    where: Condition X Y -> Out
    where_index = nonzero: Condition -> Out
    masked_select: X Mask -> Y
    gather: X Index Axis|@axis -> Out
    gather_nd: X Index -> Out
    scatter: X Ids Updates -> Out
    scatter_nd_add: X Index Updates -> Out
    index_select: X Index -> Out; dim=axis
    index_sample: X Index -> Out
    take_along_axis: Input Index -> Result; Axis=axis
    index_add: X Index AddValue -> Out
    index_put: x indices* value -> out
    repeat_interleave: X RepeatsTensor|@Repeats -> Out; dim=axis
    put_along_axis: Input Index Value -> Result; Axis=axis Reduce=reduce Include_self=include_self
    one_hot_v2 = one_hot: X depth_tensor|@depth -> Out
    unique: X -> Out Indices Index Counts
    bincount: X Weights @minlength -> Out
    searchsorted: SortedSequence Values -> Out
    set_value: Input StartsTensorList*|@starts EndsTensorList*|@ends StepsTensorList*|@steps ValueTensor|@values -> Out
    fill_constant = full_with_tensor: ValueTensor|@str_value|@value ShapeTensor|ShapeTensorList*|@shape -> Out
    fill_constant_batch_size_like = full_batch_size_like: Input -> Out
    fill_any_like = full_like: X @value -> Out
    fill_zeros_like = full_like: X @value -> Out
    assign_value: -> Out
    gaussian_random = gaussian: ShapeTensor|ShapeTensorList*|@shape -> Out
    uniform_random = uniform: ShapeTensor|ShapeTensorList*|@shape @min @max -> Out
    range = arange: Start End Step -> Out
    linspace: Start Stop Num -> Out
    eye: @num_rows @num_columns -> Out
    meshgrid: X* -> Out*
    diag_v2 = diag: X -> Out
    diagonal: Input -> Out
    shape: Input -> Out
    reshape2 = reshape: X Shape|ShapeTensor*|@shape -> Out
    reshape: X Shape|ShapeTensor*|@shape -> Out
    transpose2 = transpose: X -> Out; axis=perm
    transpose: X -> Out; axis=perm
    squeeze2 = squeeze: X AxesTensor|AxesTensorList*|@axes -> Out
    unsqueeze2 = unsqueeze: X AxesTensor|AxesTensorList*|@axes -> Out
    flatten_contiguous_range = flatten: X -> Out
    flatten2 = old_flatten: X -> Out
    concat: X* AxisTensor|@axis -> Out
    stack: X* -> Y
    unstack: X -> Y*
    split = old_split: X SectionsTensorList*|@sections AxisTensor|@axis -> Out*
    slice: Input StartsTensor|StartsTensorList*|@starts EndsTensor|EndsTensorList*|@ends -> Out
    strided_slice: Input StartsTensor|StartsTensorList*|@starts EndsTensor|EndsTensorList*|@ends \
StridesTensor|StridesTensorList*|@strides -> Out; decrease_axis=decrease
    expand_v2 = expand: X Shape|expand_shapes_tensor*|@shape -> Out
    expand_as_v2 = expand_as: X Y -> Out
    tile: X RepeatTimes|repeat_times_tensor*|@repeat_times -> Out
    roll: X ShiftsTensor|@shifts -> Out
    pad3d: X Paddings|@paddings -> Out; value=pad_value
    pad: X -> Out
    tril_triu: X -> Out
    increment: X -> Out
    lookup_table_v2 = embedding: Ids W -> Out
    lookup_table = embedding: Ids W -> Out
    conv2d: Input Filter Bias -> Output
    conv3d: Input Filter -> Output
    depthwise_conv2d: Input Filter -> Output
    conv2d_transpose: Input Filter OutputSizeTensor|@output_size -> Output
    conv3d_transpose: Input Filter -> Output
    depthwise_conv2d_transpose: Input Filter OutputSizeTensor|@output_size -> Output
    pool2d: X @ksize -> Out
    pool3d: X -> Out; ksize=kernel_size
    max_pool2d_with_index: X -> Out Mask; ksize=kernel_size
    batch_norm: X Mean Variance Scale Bias -> Y; data_layout=data_format
    sync_batch_norm = batch_norm: X Mean Variance Scale Bias -> Y; data_layout=data_format
    layer_norm: X Scale Bias -> Y Mean Variance
    group_norm: X Scale Bias -> Y Mean Variance; data_layout=data_format
    instance_norm: X Scale Bias -> Y
    rnn: Input PreState* WeightList* SequenceLength -> Out DropoutState State* Reserve
    nearest_interp_v2 = interpolate: X OutSize SizeTensor* Scale -> Out; data_layout=data_format
    bilinear_interp_v2 = interpolate: X OutSize SizeTensor* Scale -> Out; data_layout=data_format
    bicubic_interp_v2 = interpolate: X OutSize SizeTensor* Scale -> Out; data_layout=data_format
    linear_interp_v2 = interpolate: X OutSize SizeTensor* Scale -> Out; data_layout=data_format
    trilinear_interp_v2 = interpolate: X OutSize SizeTensor* Scale -> Out; data_layout=data_format
    grid_sampler = grid_sample: X Grid -> Output
    affine_grid: Theta OutputShape|@output_shape -> Output
    unfold: X -> Y
    label_smooth: X PriorDist -> Out
    softmax_with_cross_entropy = cross_entropy_with_softmax: Logits Label -> Softmax Loss
    sigmoid_cross_entropy_with_logits: X Label PosWeight -> Out
    huber_loss: X Y -> Out Residual
    kldiv_loss: X Target -> Loss
    bce_loss: X Label -> Out
    log_loss: Predicted Labels -> Loss
    yolo_box: X ImgSize -> Boxes Scores
    prior_box: Input Image -> Boxes Variances
    box_coder: PriorBox PriorBoxVar TargetBox -> OutputBox; box_normalized=normalized
    roi_align: X ROIs RoisNum -> Out
    nms: Boxes -> KeepBoxesIdxs; iou_threshold=threshold
    multiclass_nms3: BBoxes Scores RoisNum -> Out Index NmsRoisNum
    matrix_nms: BBoxes Scores -> Out Index RoisNum
    deformable_conv: Input Offset Filter Mask -> Output
    deformable_conv_v1 = deformable_conv: Input Offset Filter -> Output
    conditional_block: Cond -> Out*
    select_input: Mask X* -> Out
    while: Condition ->
    write_to_array = array_write: X I -> Out
    read_from_array = array_read: X I -> Out
    lod_array_length = array_length: X -> Out
    tensor_array_to_tensor = array_to_tensor: X -> Out OutIndex
"""


@record(frozen=True)
class _Line:
    name: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    attributes: dict[str, str]


def _line(text: str) -> tuple[str, _Line]:
    head, _, rest = text.partition(":")
    said, _, name = head.replace(" ", "").partition("=")
    slots, _, renames = rest.partition(";")
    operands, _, results = slots.partition("->")
    pairs = dict(pair.split("=") for pair in renames.split())
    return said, _Line(name or said, tuple(operands.split()), tuple(results.split()), pairs)


LEGACY = {
    **{name: _Line(name, ("X",), ("Out*" if name == "unbind" else "Out",), {}) for name in _SAME.split()},
    **dict(_line(line) for line in _TABLE.strip().splitlines()),
}


def translated(
    said: str, inputs: dict[str, list[str]], outputs: dict[str, list[str]], attributes: dict[str, Any],
    blocks: list[Block],
) -> Operation:  # fmt: skip
    """Return an operation of a ProgramDesc as PIR has it; one that the table lacks keeps its name, for the error."""
    line = LEGACY.get(said)
    if line is None:
        return Operation(f"legacy.{said}", said, [], [], {}, blocks)
    renamed = {line.attributes.get(name, name): value for name, value in attributes.items()}
    operands = [_operand(said, form, inputs, attributes) for form in line.operands]
    results: list[Any] = []
    for slot in line.results:
        names = outputs.get(slot.removesuffix("*"), [])
        if not slot.endswith("*") and len(names) > 1:
            raise FileFormatError(f"{said}: {slot} has {len(names)} values")
        results.append(list(names) if slot.endswith("*") else names[0] if names else None)
    return Operation(line.name, said, operands, results, renamed, blocks)


def _operand(said: str, form: str, inputs: dict[str, list[str]], attributes: dict[str, Any]) -> Any:
    for one in form.split("|"):
        if one.startswith("@"):
            value = attributes.get(one[1:])
            if value is not None and value != "":
                return Given(value)
            continue
        names = inputs.get(one.removesuffix("*"), [])
        if not names:
            continue
        if one.endswith("*"):
            return list(names)
        if len(names) > 1:
            raise FileFormatError(f"{said}: {one} has {len(names)} values")
        return names[0]
    return None
