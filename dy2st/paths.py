"""Modules under the paths that Paddle has for them, where what they hold stands elsewhere here.

`from dy2st.nn.layer.transformer import MultiHeadAttention` finds the name in `dy2st.nn`: a module of such a path has
no file, it looks a name up in the modules that the table gives for its path, in order, when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

ROOT = __name__.partition(".")[0]
# What follows "=" is looked up in, "." being the package itself; "a.{b c}" stands for a.b and a.c.
_TABLE = """
_C_ops = operators
_legacy_C_ops = legacy_operators
cuda = device.cuda device
autograd.backward_mode = autograd
base = framework fluid static .
base.{data_feeder framework layer_helper layer_helper_base log_helper wrapped_decorator} = framework static .
base.{backward compiler executor} = static
base.core = framework.core
base.dygraph = fluid.dygraph framework nn jit .
base.dygraph.{base math_op_patch tracer} = fluid.dygraph framework .
base.initializer = nn.initializer
base.layers = fluid.layers tensor
base.{param_attr reader} = nn io
base.unique_name = fluid.unique_name
common_ops_import = framework .
distributed.{communication parallel_env} = distributed
distributed.communication.{all_gather all_reduce broadcast group reduce scatter} = distributed
distributed.checkpoint.{save_state_dict load_state_dict} = distributed.checkpoint
distributed.fleet.base = distributed.fleet
distributed.fleet.base.{role_maker topology distributed_strategy fleet_base} = distributed.fleet
distributed.fleet.layers = distributed.fleet.meta_parallel
distributed.fleet.layers.{mpu mpu.mp_layers mpu.random mpu.mp_ops} = distributed.fleet.meta_parallel
distributed.fleet.meta_parallel.parallel_layers = distributed.fleet.meta_parallel
distributed.fleet.meta_parallel.parallel_layers.{mp_layers pp_layers random} = distributed.fleet.meta_parallel
distributed.fleet.metrics.metric = distributed.fleet.metrics
distributed.sharding.group_sharded = distributed.sharding
distributed.fleet.{model optimizer} = distributed.fleet
distributed.fleet.utils.{hybrid_parallel_util log_util} = distributed.fleet.utils distributed.fleet
fluid.{data_feeder layer_helper wrapped_decorator log_helper} = framework static .
fluid.{executor compiler} = static
fluid.{param_attr io reader} = nn io static jit
framework.{dtype framework io} = framework .
framework.random = framework .
dataset = utils.download
dataset.common = utils.download
hapi.{callbacks model_summary} = callbacks hapi .
incubate.nn.{layer memory_efficient_attention attn_bias loss} = incubate.nn.functional incubate.nn
incubate.{operators optimizer layers tensor jit} = incubate
io.dataloader = io
io.dataloader.{batch_sampler collate dataset sampler worker} = io
jit.{dy2static translated_layer sot} = jit
jit.dy2static.{program_translator utils} = jit
metric.metrics = metric
nn.{common conv container distance loss norm pooling rnn transformer vision} = nn
nn.decode = nn nn.layers.decoding
nn.layer.layers = nn nn.hooks
nn.functional.{common extension input vision} = nn.functional
nn.initializer.{initializer lazy_init} = nn.initializer
nn.quant.qat = nn.quant.quanted_layers
nn.quant.quantized_linear = nn.quant
nn.layer.activation = nn nn.layers.activation
nn.layer.{common container distance loss pooling rnn vision} = nn
nn.layer.{norm transformer} = nn nn.layers.norm nn.layers.transformer
nn.layer.conv = nn nn.layers.conv
optimizer.{adamw adamax adagrad adadelta lamb momentum rmsprop sgd} = optimizer
reader = io.reader
reader.decorator = io.reader
static.nn.common = static.nn
tensor.{attribute creation linalg logic manipulation math ops random search stat to_string} = tensor .
utils.dlpack = .
vision.datasets.{folder mnist cifar flowers voc2012} = vision.datasets
vision.models.{mobilenetv1 mobilenetv2 mobilenetv3} = vision.models
"""


def _read(table: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in table.strip().splitlines():
        path, _, sources = line.partition(" = ")
        stem, brace, inner = path.partition("{")
        last = inner.rstrip("}").split() if brace else [""]
        found.update({stem + part: tuple(sources.split()) for part in last})
    return found


PATHS = _read(_TABLE)
_FILES = frozenset(["incubate.nn", "nn.init", "static.amp", "utils.cpp_extension", "vision.datasets", "vision.image"])
"""Modules that have files of their own, which load when they are asked for."""


def submodule(package: str, name: str) -> Any:
    """Return the module of a package that has a path in the table; None where there is none.

    >>> submodule("dy2st.nn", "loss").CrossEntropyLoss.__name__, submodule("dy2st.nn", "looss")
    ('CrossEntropyLoss', None)
    """
    path = f"{package}.{name}"
    short = path.removeprefix(f"{ROOT}.")
    return import_module(path) if short in PATHS or short in _FILES else None
