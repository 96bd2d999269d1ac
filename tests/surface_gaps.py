"""What of Paddle's surface is not here, or takes other arguments, and why. `test_surface.py` lets this only shrink."""

_MISSING = {
    "sparse tensors: tensors are dense here": """
        Tensor.coalesce Tensor.cols Tensor.crows Tensor.dense_dim Tensor.indices Tensor.is_coalesced
        Tensor.nnz Tensor.rows Tensor.sparse_dim Tensor.to_sparse_coo Tensor.to_sparse_csr Tensor.values
        nn.functional.sparse_attention static.nn.sparse_embedding
    """,
    "tensors spread over processes: there is one process": """
        Tensor.get_map_tensor Tensor.num_shard Tensor.placements Tensor.process_mesh
        Tensor.reconstruct_from_
    """,
    "strings: no tensor of text here": """
        Tensor.set_string_list Tensor.set_vocab pstring raw
    """,
    "dtypes that NumPy has not, or that no op takes": """
        BFloat16Tensor Tensor.bfloat16 bfloat16 float8_e4m3fn float8_e5m2 uint16 uint32 uint64
    """,
    "parts of complex numbers: no op takes them apart yet": """
        Tensor.istft Tensor.stft
    """,
    "classes of tensors by dtype: there is one Tensor": """
        BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor
        ShortTensor Size check_shape
    """,
    "special functions that NumPy has not: they need rules of their own": """
        Tensor.frexp Tensor.gammainc Tensor.gammainc_ Tensor.gammaincc Tensor.gammaincc_ Tensor.i0
        Tensor.i0_ Tensor.i0e Tensor.i1 Tensor.i1e frexp gammainc gammainc_ gammaincc gammaincc_ i0 i0_ i0e
        i1 i1e standard_gamma
    """,
    "random numbers of further distributions": """
        Generator Tensor.cauchy_ Tensor.geometric_ Tensor.log_normal_ Tensor.random_ Tensor.top_p_sampling
        binomial cauchy_ geometric_ log_normal_ poisson
    """,
    "order statistics and counts in cells, still to come": """
        Tensor.histogramdd histogramdd
    """,
    "changes the shape or memory of a tensor in place, by strides": """
        Tensor.as_strided Tensor.block Tensor.create_parameter Tensor.create_tensor
        Tensor.fill_diagonal_tensor Tensor.fill_diagonal_tensor_ Tensor.grad_ Tensor.grad_fn Tensor.layout
        Tensor.offset Tensor.resize_ Tensor.set_ Tensor.set_tensor Tensor.type as_strided
    """,
    "factors that NumPy has not (LU, Householder, matrix exponential, randomised)": """
        Tensor.householder_product Tensor.lu Tensor.lu_unpack Tensor.ormqr Tensor.pca_lowrank
        Tensor.svd_lowrank linalg.fp8_fp8_half_gemm_fused linalg.householder_product linalg.lu
        linalg.lu_solve linalg.lu_unpack linalg.matrix_exp linalg.ormqr linalg.pca_lowrank
        linalg.svd_lowrank
    """,
    "losses over paths and trees of classes": """
        nn.AdaptiveLogSoftmaxWithLoss nn.HSigmoidLoss nn.RNNTLoss
        nn.functional.adaptive_log_softmax_with_loss nn.functional.class_center_sample
        nn.functional.hsigmoid_loss nn.functional.rnnt_loss static.nn.nce
    """,
    "pooling that is undone or cut at random": """
        nn.FractionalMaxPool2D nn.FractionalMaxPool3D nn.functional.fractional_max_pool2d
        nn.functional.fractional_max_pool3d
    """,
    "images sampled along a grid": """
        static.nn.deform_conv2d
    """,
    "fused kernels of one vendor": """
        nn.functional.flash_attention_v3_varlen nn.functional.flash_attn_qkvpacked
        nn.functional.flash_attn_varlen_qkvpacked nn.functional.flashmask_attention
        nn.functional.moe_permute nn.functional.moe_unpermute
    """,
    "beam search in a class; plain Python does it under to_static": """
        nn.BeamSearchDecoder nn.dynamic_decode
    """,
    "weights made anew at each call": """
        static.WeightNormParamAttr static.nn.spectral_norm
    """,
    "the high-level face, still to come": """
        LazyGuard MmapStorage autocast autograd.Function disable_compat disable_signal_handler enable_compat
    """,
    "statements of static mode, still to come": """
        static.ExponentialMovingAverage static.auc static.ctr_metric_bundle static.deserialize_persistables
        static.deserialize_program static.load_from_file static.nn.bilinear_tensor_product static.nn.conv3d
        static.nn.conv3d_transpose static.nn.group_norm static.nn.instance_norm static.nn.py_func
        static.nn.row_conv static.nn.sequence_conv static.nn.sequence_expand static.nn.sequence_first_step
        static.nn.sequence_last_step static.nn.sequence_pool static.nn.sequence_softmax
        static.nn.static_pylayer static.normalize_program static.save_to_file static.serialize_persistables
        static.serialize_program
    """,
}
MISSING = {f"paddle.{name}": why for why, names in _MISSING.items() for name in names.split()}
"""The reason for each name that is not here."""

OTHER_ARGUMENTS = {
    "paddle.jit.TranslatedLayer": "made by jit.load alone",
    "paddle.static.Variable": "made by static.data and by statements alone",
}
"""The reason for each name whose arguments are not those of the table."""
