"""Training through the stages of a pipeline: a batch goes by micro-batches, of which each stage has one at a time.

    stage 0   F0 F1    B0 F2 B1 F3 B2    B3        F: forward, B: backward, of a micro-batch; a stage has at most as
    stage 1      F0 B0 F1 B1 F2 B2 F3 B3           many of them open as stages follow, itself included

("1F1B", Narayanan et al., "PipeDream", 2019.) Gradients add up; behind the last micro-batch they are averaged over the
processes that have the same stage, and the optimizer makes one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st.distributed.collective import ReduceOp, Task, all_reduce, barrier, broadcast, isend, recv
from dy2st.distributed.data_parallel import DataParallel
from dy2st.distributed.model_parts import share_whole_parameters
from dy2st.functions.core.operands import constant
from dy2st.functions.shape.creation import full, zeros, zeros_like
from dy2st.ir.context import current, replaced
from dy2st.nn.layer import Layer
from dy2st.runtime.autograd_engine.backward import backward
from dy2st.runtime.eager.side_effect_check import refusal
from dy2st.runtime.eager.tensor import Tensor

_CODES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "bool", "uint8", "int8", "int16",
          "complex64", "complex128")  # fmt: skip
_HEADER = 96
"""The numbers that say what a message between stages has: how many tensors, and for each code, whether it has a
gradient, rank and extents."""


class PipelineParallel(Layer):
    """A PipelineLayer as the processes of a job train it; of one process, all of its layers with micro-batches.

    `strategy.pipeline_configs["accumulate_steps"]` says in how many micro-batches a batch goes.
    """

    def __init__(self, layers: Any, hcg: Any, strategy: Any = None):
        super().__init__()
        configs = {} if strategy is None else strategy.pipeline_configs
        self._layers, self._hcg = layers, hcg
        self.accumulate_steps = int(configs.get("accumulate_steps", 1))
        self._micro_batch_size = configs.get("micro_batch_size")
        if self.accumulate_steps < 1:
            raise ValueError(f"pipeline_configs: accumulate_steps is at least 1, not {self.accumulate_steps}")
        self._pipe = hcg.group("pp")
        share_whole_parameters(layers, hcg)
        self._averaged = (DataParallel(layers, group=hcg.group("dp", "sharding")),)  # no sublayer
        self._averaged[0]._syncs = False
        if self._pipe.nranks > 1:
            barrier(self._pipe)  # all of them make its communicator together

    # ---- Paddle's face -----------------------------------------------------------------------------------------------
    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Run the layers; RuntimeError where they are of several stages: `train_batch` and `eval_batch` run these."""
        if self._pipe.nranks > 1:
            raise RuntimeError("the stages of a pipeline are run by train_batch(data, optimizer) or eval_batch(data)")
        return self._layers(*inputs, **kwargs)

    def train_batch(self, data: Any, optimizer: Any, lr_scheduler: Any = None, scaler: Any = None) -> Tensor:
        """Make one step by a batch, a pair of inputs and labels; return its loss, in all stages.

        The first stage reads the inputs, the last one the labels; both have as many rows. ValueError where
        micro-batches do not share them evenly. It is called outside of static functions; the layers may be one.
        """
        if current().trace is not None:
            raise refusal("train_batch() sends what only the run will tell", "call it outside of the static function")
        self._layers.train()
        loss = self._run(_Batch(data, self.accumulate_steps, self._micro_batch_size), scaler, trains=True)
        for weight, group in self._layers.tied:
            if weight.grad is None:
                weight.grad = zeros_like(weight)
            all_reduce(weight.grad, ReduceOp.SUM, group)
        (averaged,) = self._averaged
        averaged._syncs = True
        averaged.average_gradients()
        averaged._syncs = False
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()
        optimizer.clear_grad()
        if lr_scheduler is not None:
            lr_scheduler.step()
        return loss

    def eval_batch(self, data: Any, compute_loss: bool = True) -> Any:
        """Return the loss of a batch, in all stages; without `compute_loss` the outputs, in the last one."""
        self._layers.eval()
        with replaced(grad=False):
            batch = _Batch(data, self.accumulate_steps, self._micro_batch_size)
            return self._run(batch, None, trains=False, compute_loss=compute_loss)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the state of the layers of this stage."""
        return self._layers.state_dict(*args, **kwargs)

    def set_state_dict(self, state_dict: Any, use_structured_name: bool = True) -> Any:
        """Restore the state of the layers of this stage."""
        return self._layers.set_state_dict(state_dict, use_structured_name)

    set_dict = load_dict = set_state_dict

    # ---- the schedule ------------------------------------------------------------------------------------------------
    def _run(self, batch: _Batch, scaler: Any, trains: bool, compute_loss: bool = True) -> Any:
        stage, count = self._pipe.rank, batch.count
        ahead = min(self._pipe.nranks - 1 - stage, count) if trains else count
        run = _Run(self, batch, scaler, compute_loss, trains)
        for i in range(ahead):
            run.forward(i)
        for i in range(ahead, count):
            run.forward(i)
            run.backward()
        while trains and run.open:
            run.backward()
        for task in run.sent:
            task.wait()
        return run.result()

    def loss_of(self, outputs: Any, labels: Any) -> Tensor:
        """Return the loss of a micro-batch; ValueError where the PipelineLayer was given no loss_fn."""
        if self._layers._loss_fn is None:
            raise ValueError("PipelineLayer: without a loss_fn there is nothing to train by")
        return self._layers._loss_fn(outputs, labels)


class _Run:
    """What a stage does with one batch."""

    def __init__(self, model: PipelineParallel, batch: _Batch, scaler: Any, compute_loss: bool, trains: bool):
        self._model, self._batch, self._scaler = model, batch, scaler
        self._computes_loss, self._trains = compute_loss, trains
        ranks, at = model._pipe.ranks, model._pipe.rank
        self._before = ranks[at - 1] if at > 0 else None
        self._after = ranks[at + 1] if at + 1 < len(ranks) else None
        self.open: list[tuple[list[Tensor], list[Tensor]]] = []
        """Inputs and outputs of the micro-batches that went forward and not yet back."""
        self.sent: list[Task] = []
        self._total: Any = None
        self._outputs: list[Any] = []

    def forward(self, i: int) -> None:
        """Run this stage on a micro-batch."""
        if self._before is None:
            given, inputs = self._batch.inputs(i), []
        else:
            inputs = self._received(self._before)
            given = inputs[0] if len(inputs) == 1 else tuple(inputs)
        made = self._model._layers(given)
        if self._after is not None:
            outputs = [made] if isinstance(made, Tensor) else list(made)
            self._send(outputs, self._after)
        elif self._computes_loss:
            loss = self._model.loss_of(made, self._batch.labels(i)) / self._batch.count
            self._total = loss.detach() if self._total is None else self._total + loss.detach()
            outputs = [loss if self._scaler is None else self._scaler.scale(loss)]
        else:
            self._outputs.append(made)
            return
        if self._trains:
            self.open.append((inputs, outputs))

    def backward(self) -> None:
        """Go back through this stage for the first micro-batch that is open."""
        if not self.open:
            return
        inputs, outputs = self.open.pop(0)
        outputs = [t for t in outputs if not t.stop_gradient]
        seeds = None if self._after is None else self._received(self._after)
        if outputs:
            backward(outputs, seeds)
        if self._before is not None:
            given = [t for t in inputs if not t.stop_gradient]
            self._send([zeros_like(t) if t.grad is None else t.grad for t in given], self._before)

    def result(self) -> Any:
        """Return the loss, which the last stage gives all others; or its outputs."""
        if not self._computes_loss:
            return self._outputs
        pipe = self._model._pipe
        if pipe.nranks == 1:
            return self._total
        loss = zeros([], "float64") if self._total is None else self._total.astype("float64")
        with replaced(grad=False):
            broadcast(loss, pipe.ranks[-1], pipe)
        return loss.astype("float32")

    # ---- messages ----------------------------------------------------------------------------------------------------
    def _send(self, tensors: Sequence[Tensor], to: int) -> None:
        header = [len(tensors)]
        for t in tensors:
            header += [_CODES.index(t.dtype.name), int(t.stop_gradient), t.ndim, *t.shape]
        if len(header) > _HEADER:
            raise ValueError(f"a pipeline: {len(tensors)} tensors are too many between two stages")
        said = constant(np.array(header + [0] * (_HEADER - len(header)), np.int64), None)
        for t in (said, *(t.detach() for t in tensors)):
            self.sent.append(isend(t, to, self._model._pipe))

    def _received(self, source: int) -> list[Tensor]:
        said = full([_HEADER], 0, "int64")
        recv(said, source, self._model._pipe)
        numbers = iter(said.tolist())
        made: list[Tensor] = []
        for _ in range(next(numbers)):
            name, stops, rank = _CODES[next(numbers)], bool(next(numbers)), next(numbers)
            made.append(full([next(numbers) for _ in range(rank)], 0, name))
            made[-1].stop_gradient = True
            recv(made[-1], source, self._model._pipe)
            made[-1].stop_gradient = stops
        return made


class _Batch:
    """A batch as micro-batches: rows of its inputs and labels."""

    def __init__(self, data: Any, count: int, size: Any):
        if not isinstance(data, (tuple, list)) or len(data) != 2:
            raise TypeError("train_batch takes a pair: inputs and labels")
        self._inputs, self._labels = data
        self.count = count
        for t in _tensors(data):
            rows = int(t.shape[0])
            if rows % count or (size is not None and rows != count * size):
                wanted = f" of {size}" if size is not None else ""
                raise ValueError(f"train_batch: {rows} rows are not {count} micro-batches{wanted}")

    def inputs(self, i: int) -> Any:
        """Return the inputs of a micro-batch."""
        return self._rows(self._inputs, i)

    def labels(self, i: int) -> Any:
        """Return the labels of a micro-batch."""
        return self._rows(self._labels, i)

    def _rows(self, value: Any, i: int) -> Any:
        if isinstance(value, (tuple, list)):
            return tuple(self._rows(x, i) for x in value)
        size = int(value.shape[0]) // self.count
        return value[i * size : (i + 1) * size]


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [t for x in value for t in _tensors(x)]
    return [] if value is None else [value]
