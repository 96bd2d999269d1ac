"""What of Paddle's surface is not here, or takes other arguments, and why. `test_surface.py` lets this only shrink."""

_MISSING = {
    "sparse tensors: they are of two classes of their own, see paddle.sparse": """
        Tensor.coalesce Tensor.cols Tensor.crows Tensor.dense_dim Tensor.indices Tensor.is_coalesced Tensor.nnz
        Tensor.rows Tensor.sparse_dim Tensor.values
    """,
    "tensors that know how they are spread over processes: parameters in parts are those of layers": """
        Tensor.get_map_tensor Tensor.num_shard Tensor.placements Tensor.process_mesh Tensor.reconstruct_from_
    """,
    "strings: no tensor of text here": """
        Tensor.set_string_list Tensor.set_vocab pstring raw
    """,
    "dtypes that PaddlePaddle makes no tensors of on CPUs, or NumPy has not": """
        float8_e4m3fn float8_e5m2 uint32 uint64
    """,
    "changes the shape or memory of a tensor in place, by strides": """
        Tensor.create_parameter Tensor.create_tensor Tensor.set_tensor
    """,
    "factors that NumPy has not (LU, Householder, matrix exponential, randomised)": """
        linalg.fp8_fp8_half_gemm_fused
    """,
    "losses over paths and trees of classes": """
        static.nn.nce
    """,
    "the layers of images stand above static: vision.ops.deform_conv2d with a parameter does it": """
        static.nn.deform_conv2d
    """,
    "weights made anew at each call: nn.utils.weight_norm does it for a layer": """
        static.WeightNormParamAttr
    """,
    "the high-level face, still to come": """
        MmapStorage
    """,
    "sequences of several lengths in one tensor: PaddlePaddle 3.3 refuses them in its default mode": """
        static.nn.sequence_conv static.nn.sequence_expand static.nn.sequence_first_step
        static.nn.sequence_last_step static.nn.sequence_pool static.nn.sequence_softmax
    """,
    "sums over the workers of a parameter server": """
        static.ctr_metric_bundle
    """,
}
MISSING = {f"paddle.{name}": why for why, names in _MISSING.items() for name in names.split()}
"""The reason for each name that is not here."""

OTHER_ARGUMENTS = {
    "paddle.jit.TranslatedLayer": "made by jit.load alone",
    "paddle.static.Variable": "made by static.data and by statements alone",
}
"""The reason for each name whose arguments are not those of the table."""

_SAME = "results are the same either way"
_ONE = "there is one process"
_TEXT = "what is printed has all of it"
HARMLESS = {
    "fixed_seed_offset": "a state of one kernel", "rng_name": "there is one generator",
    "entry": "a table of rows is kept here, not by servers", "table_class": "a table of rows is kept here",
    "slot": "a table of rows is kept here",
    "num_splits": "a hint about speed", "pack_gqa": "a hint about speed", "sm_margin": "a hint about speed",
    "blocked_modules": "it always raises", "scope": "it always raises", "silent": "it always raises",
    "total_zipped_tokens": "known by the map of rows", "num_experts": "known by the map of rows",
    "using_mix_precision": "sums are in float32 in any case",
    "assume_unique": _SAME, "backend": _SAME, "blocking": _SAME, "build_strategy": "a hint about speed",
    "checkpoints": "saves memory elsewhere", "comm_buffer_size": _ONE, "cache_enabled": _SAME,
    "device": "one answer for every device",
    "device_type": "one answer for every device", "distop_context": _ONE, "do_model_average_for_mean_and_var": _SAME,
    "driver": _SAME, "executor": "variables are found without it", "feed_var_name": "feeds are found without it",
    "fetch_var_name": "results are found without it", "find_unused_parameters": _ONE, "force_cpu": _SAME,
    "func": "a function that is decorated, which __new__ takes", "group": _ONE, "in_place": _SAME, "inplace": _SAME,
    "is_arithmetic": "a left shift is the same for both", "is_distributed": _ONE, "is_sparse": "gradients are dense",
    "is_test": _SAME, "last_comm_buffer_size": _ONE, "lazy_mode": "gradients are dense", "numeric_stable_mode": _SAME,
    "output_size": "the sum of the repeats, which is known", "persistable": "every global variable is kept",
    "persistent_workers": "a hint about speed", "place": "the device is chosen by set_device",
    "print_tensor_layout": _TEXT, "print_tensor_lod": _TEXT, "print_tensor_name": _TEXT, "print_tensor_shape": _TEXT,
    "print_tensor_type": _TEXT,
    "protocol": "nothing is pickled", "reader_buffer_size": "a hint about speed", "return_names": _SAME,
    "sorted": "they are sorted in any case", "sparse": "gradients are dense", "stable": "every sort is stable",
    "strategy": _ONE, "summarize": _TEXT, "use_buffer_reader": "a hint about speed", "use_cudnn": _SAME,
    "use_hook": "there are no hooks of states", "use_multi_tensor": _SAME, "use_program_cache": "a hint about speed",
    "use_prune": "a run leaves out what no result needs", "use_shared_memory": "a hint about speed",
}  # fmt: skip
"""Arguments that are accepted and not read, and why that is right."""
