"""Model: a network with what trains it: `prepare`, then `fit`, `evaluate`, `predict`, `save` and `load`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from dy2st.amp import GradScaler, auto_cast
from dy2st.distributed.collective import all_gather
from dy2st.functions.math.arithmetic import add_n
from dy2st.functions.shape.concat_split import concat
from dy2st.functions.shape.from_data import to_tensor
from dy2st.hapi.callback import Callback, CallbackList
from dy2st.hapi.progress import ProgBarLogger
from dy2st.hapi.summary import summary
from dy2st.hapi.watching import LRScheduler, ModelCheckpoint
from dy2st.io import DataLoader, Dataset
from dy2st.ir.context import replaced
from dy2st.jit.serialization.io import load_pair, save, save_pair, save_state
from dy2st.metric import Metric
from dy2st.nn.layer import Layer
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.tensor import Tensor


def _all_gather(x: Tensor) -> Tensor:  # pyright: ignore[reportUnusedFunction] projects import it
    """Return the tensors of all processes, one after the other along axis 0."""
    gathered: list[Tensor] = []
    all_gather(gathered, x)
    return concat(gathered, axis=0)


class Model:
    """A network that is trained, evaluated and run by the batch or by the data set.

    Parameters
    ----------
    network
        The Layer.
    inputs, labels
        InputSpecs of what a sample has; without them the arguments of the network's `forward` say how many of its
        fields are inputs. `save(path, training=False)` needs `inputs`.

    >>> import dy2st as paddle
    >>> network = paddle.nn.Linear(2, 1)
    >>> model = paddle.Model(network)
    >>> model.prepare(paddle.optimizer.SGD(0.1, parameters=model.parameters()), paddle.nn.MSELoss())
    >>> x, y = paddle.ones([4, 2]), paddle.zeros([4, 1])
    >>> first, *_, last = [float(model.train_batch(x, y)[0]) for _ in range(20)]
    >>> last <= first
    True
    """

    def __init__(self, network: Layer, inputs: Any = None, labels: Any = None):
        if not isinstance(network, Layer):
            raise TypeError(f"Model needs a Layer, not {type(network).__name__}")
        self.network = network
        self._inputs, self._labels = _listed(inputs), _listed(labels)
        self._optimizer: Any = None
        self._loss: Callable[..., Any] | None = None
        self._metrics: list[Metric] = []
        self._amp: dict[str, Any] | None = None
        self._scaler: GradScaler | None = None
        self.stop_training = False

    def prepare(self, optimizer: Any = None, loss: Any = None, metrics: Any = None, amp_configs: Any = None) -> None:
        """Say what trains the network, what is least, what is counted, and in which precision ("O1", or a dict)."""
        if loss is not None and not callable(loss):
            raise TypeError(f"Model.prepare: the loss must be a Layer or a function, not {type(loss).__name__}")
        self._optimizer, self._loss, self._metrics = optimizer, loss, _listed(metrics)
        for metric in self._metrics:
            if not isinstance(metric, Metric):
                raise TypeError(f"Model.prepare: metrics must be Metrics, not {type(metric).__name__}")
        given: dict[str, Any] = (
            {"level": amp_configs} if isinstance(amp_configs, str) else dict(amp_configs or {"level": "O0"})
        )
        level = given.pop("level", "O1")
        if level == "O0":
            return
        casts = {k: given.pop(k) for k in ("custom_white_list", "custom_black_list", "dtype") if k in given}
        given.pop("use_fp16_guard", None)
        self._amp, self._scaler = {"level": level, **casts}, GradScaler(**given)

    # ---- one batch -------------------------------------------------------------------------------------------------
    def train_batch(self, inputs: Any, labels: Any = None, update: bool = True) -> Any:
        """Train on one batch; return the losses, and the metrics where there are any.

        Without `update` the gradients are added to those of the next batch.
        """
        if self._optimizer is None:
            raise RuntimeError("Model.prepare has to be given an optimizer before the training")
        self.network.train()
        given = _tensors(labels)
        with self._cast():
            outputs = _listed(self.network(*_tensors(inputs)))
            losses = self._losses(outputs, given)
            total = losses[0] if len(losses) == 1 else add_n(losses)
        scaled = total if self._scaler is None else self._scaler.scale(total)
        scaled.backward()
        if update:
            if self._scaler is None:
                self._optimizer.step()
            else:
                self._scaler.step(self._optimizer)
                self._scaler.update()
            self._optimizer.clear_grad()
        return self._report(losses, outputs, given)

    def eval_batch(self, inputs: Any, labels: Any = None) -> Any:
        """Return the losses of one batch, and the metrics where there are any."""
        self.network.eval()
        given = _tensors(labels)
        with replaced(grad=False), self._cast():
            outputs = _listed(self.network(*_tensors(inputs)))
            losses = self._losses(outputs, given) if self._loss is not None else []
        return self._report(losses, outputs, given)

    def predict_batch(self, inputs: Any) -> list[np.ndarray]:
        """Return the outputs for one batch as arrays."""
        self.network.eval()
        with replaced(grad=False), self._cast():
            return [t.numpy() for t in _listed(self.network(*_tensors(inputs)))]

    # ---- whole data sets -------------------------------------------------------------------------------------------
    def fit(
        self, train_data: Any = None, eval_data: Any = None, batch_size: int = 1, epochs: int = 1, eval_freq: int = 1,
        log_freq: int = 10, save_dir: str | None = None, save_freq: int = 1, verbose: int = 2, drop_last: bool = False,
        shuffle: bool = True, num_workers: int = 0, callbacks: Any = None, accumulate_grad_batches: int = 1,
        num_iters: int | None = None,
    ) -> None:  # fmt: skip
        """Train on a Dataset or DataLoader, and evaluate on another every `eval_freq` epochs.

        Parameters
        ----------
        save_dir, save_freq
            Where to save the model, and every how many epochs.
        verbose, log_freq
            0 prints nothing, 1 a bar, 2 lines; every so many batches.
        accumulate_grad_batches
            How many batches make one step of the optimizer.
        num_iters
            How many batches there are in all, if fewer than in `epochs`.
        """
        if train_data is None:
            raise ValueError("Model.fit needs train_data")
        loader = _loader(train_data, batch_size, shuffle, drop_last, num_workers)
        held_out = None if eval_data is None else _loader(eval_data, batch_size, False, False, num_workers)
        steps = _length(loader)
        if num_iters is not None:
            steps = num_iters if steps is None else min(num_iters, steps)
        settings = {"batch_size": batch_size, "epochs": epochs, "steps": steps, "verbose": verbose,
                    "metrics": self._names(), "save_dir": save_dir}  # fmt: skip
        watching = self._watching(callbacks, settings, log_freq, verbose, save_dir, save_freq)
        self.stop_training, left = False, num_iters
        watching.call("train_begin", None)
        logs: dict[str, Any] = {}
        for epoch in range(epochs):
            watching.call("epoch_begin", epoch, None)
            logs, done = self._epoch(loader, watching, left, accumulate_grad_batches)
            left = None if left is None else left - done
            watching.call("epoch_end", epoch, logs)
            if held_out is not None and epoch % eval_freq == 0:
                logs = self._evaluate(held_out, watching, None)
            if self.stop_training or left == 0:
                break
        watching.call("train_end", logs)

    def evaluate(
        self, eval_data: Any, batch_size: int = 1, log_freq: int = 10, verbose: int = 2, num_workers: int = 0,
        callbacks: Any = None, num_iters: int | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Return the loss of the last batch and the metrics of a Dataset or DataLoader."""
        loader = _loader(eval_data, batch_size, False, False, num_workers)
        settings = {"batch_size": batch_size, "verbose": verbose, "metrics": self._names()}
        logs = self._evaluate(loader, self._watching(callbacks, settings, log_freq, verbose), num_iters)
        return {name: value for name, value in logs.items() if name not in ("step", "batch_size")}

    def predict(
        self, test_data: Any, batch_size: int = 1, num_workers: int = 0, stack_outputs: bool = False, verbose: int = 1,
        callbacks: Any = None,
    ) -> list[Any]:  # fmt: skip
        """Return the outputs for a Dataset or DataLoader: for each output its batches, or one array `stack_outputs`."""
        loader = _loader(test_data, batch_size, False, False, num_workers)
        settings = {"batch_size": batch_size, "verbose": verbose, "metrics": []}
        watching = self._watching(callbacks, settings, 1, verbose)
        watching.call("predict_begin", {"steps": _length(loader), "metrics": []})
        batches: list[list[np.ndarray]] = []
        for step, batch in enumerate(loader):
            watching.call("predict_batch_begin", step, None)
            inputs, _ = self._fields(batch)
            batches.append(self.predict_batch(inputs))
            watching.call("predict_batch_end", step, {"step": step, "batch_size": _count(inputs)})
        watching.call("predict_end", None)
        columns = [tuple(column) for column in zip(*batches, strict=True)]
        return [np.concatenate(column) for column in columns] if stack_outputs else columns

    # ---- the rest --------------------------------------------------------------------------------------------------
    def parameters(self, *args: Any, **keywords: Any) -> list[Parameter]:
        """Return the parameters of the network."""
        return self.network.parameters(*args, **keywords)

    def summary(self, input_size: Any = None, dtype: Any = None) -> dict[str, int]:
        """Print the layers of the network, for inputs of the InputSpecs unless a size is given."""
        return summary(self.network, input_size if input_size is not None else self._inputs, dtype)

    def save(self, path: str, training: bool = True) -> None:
        """Write `path.pdparams` and `path.pdopt`; without `training` the Program, as `paddle.jit.save` does.

        The two files are replaced together: whenever the process is killed, `load` finds both of one save.
        """
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        if not training:
            if not self._inputs:
                raise RuntimeError("Model.save(training=False) needs InputSpecs: Model(network, inputs=[...])")
            save(self.network, path, input_spec=self._inputs)
            return
        if self._optimizer is None:
            save_state(self.network.state_dict(), f"{path}.pdparams")
        else:
            save_pair(self.network.state_dict(), self._optimizer.state_dict(), str(path))

    def load(self, path: str, skip_mismatch: bool = False, reset_optimizer: bool = False) -> None:
        """Read what `save` wrote.

        With `skip_mismatch` parameters that are missing or have another shape stay as they are, else ValueError names
        them; with `reset_optimizer` the state of the optimizer is not read.
        """
        stem = str(path).removesuffix(".pdparams").removesuffix(".pdopt")
        wants_state = self._optimizer is not None and not reset_optimizer
        held, (found, state) = self.network.state_dict(), load_pair(stem, wants_state)
        fitting = {n: v for n, v in found.items() if n in held and list(v.shape) == list(held[n].shape)}
        wrong = sorted(held.keys() - fitting.keys())
        if wrong and not skip_mismatch:
            raise ValueError(f"{stem}.pdparams does not have, or not in this shape: {', '.join(wrong)}")
        self.network.set_state_dict({**held, **fitting})
        if self._optimizer is not None and state is not None:
            self._optimizer.set_state_dict(state)

    # ---- inside ----------------------------------------------------------------------------------------------------
    def _epoch(
        self, loader: Any, watching: CallbackList, most: int | None, together: int
    ) -> tuple[dict[str, Any], int]:
        for metric in self._metrics:
            metric.reset()
        logs: dict[str, Any] = {}
        steps, done = _length(loader), 0
        for step, batch in enumerate(loader):
            watching.call("train_batch_begin", step, logs)
            inputs, labels = self._fields(batch)
            whole = (step + 1) % together == 0 or step + 1 == steps
            logs = self._logs(self.train_batch(inputs, labels, whole), step, inputs)
            watching.call("train_batch_end", step, logs)
            done = step + 1
            if self.stop_training or done == most:
                break
        return logs, done

    def _evaluate(self, loader: Any, watching: CallbackList, most: int | None) -> dict[str, Any]:
        for metric in self._metrics:
            metric.reset()
        watching.call("eval_begin", {"steps": _length(loader), "metrics": self._names()})
        logs: dict[str, Any] = {}
        for step, batch in enumerate(loader):
            watching.call("eval_batch_begin", step, logs)
            inputs, labels = self._fields(batch)
            logs = self._logs(self.eval_batch(inputs, labels), step, inputs)
            watching.call("eval_batch_end", step, logs)
            if step + 1 == most:
                break
        watching.call("eval_end", logs)
        return logs

    def _losses(self, outputs: list[Any], labels: list[Any]) -> list[Any]:
        if self._loss is None:
            raise RuntimeError("Model.prepare has to be given a loss before the training")
        return _listed(self._loss(*outputs, *labels))

    def _report(self, losses: list[Any], outputs: list[Any], labels: list[Any]) -> Any:
        """Return the losses as arrays, with what the metrics say of this batch."""
        found = [loss.numpy() for loss in losses]
        with replaced(grad=False):
            counted = [m.update(*_listed(m.compute(*outputs, *labels))) for m in self._metrics]
        return (found, counted) if self._metrics and found else counted if self._metrics else found

    def _logs(self, report: Any, step: int, inputs: list[Any]) -> dict[str, Any]:
        losses = report[0] if isinstance(report, tuple) else (report if not self._metrics else [])
        logs: dict[str, Any] = {"loss": [float(np.mean(v)) for v in losses]} if losses else {}
        for metric in self._metrics:
            logs.update(zip(_listed(metric.name()), _listed(metric.accumulate()), strict=True))
        return {**logs, "step": step, "batch_size": _count(inputs)}

    def _fields(self, batch: Any) -> tuple[list[Any], list[Any]]:
        """Tell the inputs of a batch from its labels."""
        fields = _listed(batch)
        count = len(self._inputs) or _arguments(self.network.forward)
        return fields[:count], fields[count:]

    def _cast(self) -> AbstractContextManager[Any]:
        return auto_cast(**self._amp) if self._amp is not None else nullcontext()

    def _names(self) -> list[str]:
        return ["loss", *(name for metric in self._metrics for name in _listed(metric.name()))]

    def _watching(
        self, callbacks: Any, settings: dict[str, Any], log_freq: int, verbose: int, save_dir: str | None = None,
        save_freq: int = 1,
    ) -> CallbackList:  # fmt: skip
        given: list[Callback] = _listed(callbacks)
        kinds = tuple(type(c) for c in given)
        if not any(issubclass(k, ProgBarLogger) for k in kinds):
            given = [ProgBarLogger(log_freq, verbose), *given]
        if not any(issubclass(k, LRScheduler) for k in kinds):
            given = [*given, LRScheduler()]
        if not any(issubclass(k, ModelCheckpoint) for k in kinds):
            given = [*given, ModelCheckpoint(save_freq, save_dir)]
        return CallbackList(given, self, settings)


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _tensors(values: Any) -> list[Tensor]:
    return [v if isinstance(v, Tensor) else to_tensor(v) for v in _listed(values)]


def _loader(data: Any, batch_size: int, shuffle: bool, drop_last: bool, workers: int) -> Iterable[Any]:
    if not isinstance(data, Dataset):
        return data
    return DataLoader(data, batch_size=batch_size, shuffle=shuffle, drop_last=drop_last, num_workers=workers)


def _length(loader: Any) -> int | None:
    return len(loader) if hasattr(loader, "__len__") else None


def _count(inputs: list[Any]) -> int:
    shape: Any = getattr(inputs[0], "shape", ()) if inputs else ()
    return int(shape[0]) if len(shape) else 1


def _arguments(forward: Callable[..., Any]) -> int:
    """Return how many arguments a method takes that have no default."""
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = inspect.signature(forward).parameters.values()
    return max(sum(p.kind in plain and p.default is p.empty for p in found), 1)
