"""Sequences made step by step, each from the one before: `dynamic_decode`, and beam search for its decoder.

Under `to_static` the steps are one loop of the Program, which ends when all sequences have.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dy2st import dtypes
from dy2st.functions.core.operands import cast_to
from dy2st.functions.math.comparison import logical_not, where
from dy2st.functions.math.reduction import all as all_of
from dy2st.functions.math.search import topk
from dy2st.functions.shape.broadcasting import expand
from dy2st.functions.shape.concat_split import stack
from dy2st.functions.shape.creation import arange, full, zeros
from dy2st.functions.shape.gather_scatter import take_along_axis
from dy2st.functions.shape.manipulation import reshape, transpose
from dy2st.ir.context import current
from dy2st.nn.functional.lookup import gather_tree
from dy2st.nn.functional.softmax_family import log_softmax
from dy2st.runtime.eager.tensor import Tensor

_NEVER = -1e9


class Decoder:
    """What `dynamic_decode` runs: how it starts, a step, and what becomes of all outputs."""

    tracks_own_finished = False
    """Whether `step` says itself which sequences are over, and keeps them so."""

    def initialize(self, initial_cell_states: Any) -> tuple[Any, Any, Tensor]:
        """Return the first inputs, the first states, and which sequences are over: (inputs, states, finished)."""
        raise NotImplementedError(f"{type(self).__name__} has no initialize()")

    def step(self, time: Tensor, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any, Any, Tensor]:
        """Return (outputs, next states, next inputs, finished)."""
        raise NotImplementedError(f"{type(self).__name__} has no step()")

    def finalize(self, outputs: Any, final_states: Any, sequence_lengths: Tensor) -> tuple[Any, Any]:
        """Return the outputs of all steps, [time, batch, ...], and the last states, as they are to be given."""
        return outputs, final_states


class OutputWrapper(NamedTuple):
    """What a step of beam search gives: [batch, beams] each."""

    scores: Any
    predicted_ids: Any
    parent_ids: Any


class StateWrapper(NamedTuple):
    """What beam search carries from step to step."""

    cell_states: Any
    log_probs: Any
    finished: Any
    lengths: Any


class BeamSearchDecoder(Decoder):
    """Beam search with a cell: of all continuations of `beam_size` sequences the likeliest `beam_size` live on.

    `embedding_fn` makes inputs of the cell from tokens, `output_fn` scores of all tokens from what the cell gives. The
    last states of the cell must not have a beam axis; tensors beside them that the cell reads need
    `tile_beam_merge_with_batch`.

    >>> import dy2st as paddle
    >>> cell, table, to_words = paddle.nn.GRUCell(4, 8), paddle.nn.Embedding(10, 4), paddle.nn.Linear(8, 10)
    >>> decoder = paddle.nn.BeamSearchDecoder(cell, 0, 1, 3, table, to_words)
    >>> words, _ = paddle.nn.dynamic_decode(decoder, paddle.zeros([2, 8]), max_step_num=4)
    >>> words.shape[0], words.shape[2]
    (2, 3)
    """

    OutputWrapper, StateWrapper = OutputWrapper, StateWrapper
    tracks_own_finished = True

    def __init__(
        self, cell: Any, start_token: int, end_token: int, beam_size: int, embedding_fn: Any = None,
        output_fn: Any = None,
    ):  # fmt: skip
        self.cell, self.embedding_fn, self.output_fn = cell, embedding_fn, output_fn
        self.start_token, self.end_token, self.beam_size = start_token, end_token, beam_size

    @staticmethod
    def tile_beam_merge_with_batch(x: Any, beam_size: int) -> Tensor:
        """Return x [batch, ...] with each row repeated for its beams: [batch * beam_size, ...]."""
        return _merged(_with_beams(x, beam_size))

    def initialize(self, initial_cell_states: Any) -> tuple[Any, Any, Tensor]:
        """Start all sequences with `start_token`; at first only one of the equal beams counts."""
        cells = _map(lambda x: _with_beams(x, self.beam_size), initial_cell_states)
        batch = _first(initial_cell_states).shape[0]
        shape = [batch, self.beam_size]
        row = where(arange(self.beam_size) == 0, full([], 0.0, "float32"), full([], _NEVER, "float32"))
        finished = zeros(shape, "bool")
        states = StateWrapper(cells, expand(row, shape), finished, zeros(shape, "int64"))
        start = full(shape, self.start_token, "int64")
        return start if self.embedding_fn is None else self.embedding_fn(start), states, finished

    def step(self, time: Tensor, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any, Any, Tensor]:
        """Run the cell for all beams, and keep the best of their continuations."""
        cells = _map(_merged, states.cell_states)
        out, cells = self.cell(_map(_merged, inputs), cells, **kwargs)
        out, cells = (_map(lambda x: reshape(x, [-1, self.beam_size, *x.shape[1:]]), part) for part in (out, cells))
        outputs, states = self._continued(out if self.output_fn is None else self.output_fn(out), cells, states)
        words = outputs.predicted_ids
        return outputs, states, words if self.embedding_fn is None else self.embedding_fn(words), states.finished

    def _continued(self, logits: Tensor, cells: Any, states: Any) -> tuple[Any, Any]:
        words = logits.shape[-1]
        logs = log_softmax(logits)
        over = where(arange(words) == self.end_token, full([], 0.0, logs.dtype), full([], _NEVER, logs.dtype))
        logs = where(states.finished.unsqueeze(2), over, logs) + states.log_probs.unsqueeze(2)
        scores, places = topk(reshape(logs, [-1, self.beam_size * words]), self.beam_size)
        parents, tokens = places // words, places % words
        finished = take_along_axis(states.finished, parents, 1)
        lengths = take_along_axis(states.lengths, parents, 1) + cast_to(logical_not(finished), dtypes.int64)
        kept = _map(lambda x: _of_beams(x, parents), cells)
        finished = finished | (tokens == self.end_token)
        return OutputWrapper(scores, tokens, parents), StateWrapper(kept, scores, finished, lengths)

    def finalize(self, outputs: Any, final_states: Any, sequence_lengths: Tensor) -> tuple[Any, Any]:
        """Return the tokens of the beams, [time, batch, beams], each followed back to its start."""
        return gather_tree(outputs.predicted_ids, outputs.parent_ids), final_states


def dynamic_decode(
    decoder: Any, inits: Any = None, max_step_num: int | None = None, output_time_major: bool = False,
    impute_finished: bool = False, is_test: bool = False, return_length: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """Run the steps of a decoder until all sequences are over; return its outputs, last states, and perhaps lengths.

    At most `max_step_num` + 1 steps are made. Outputs are [batch, time, ...], or [time, batch, ...]. `impute_finished`
    holds the states of sequences that are over where the decoder does not. `is_test` changes nothing.
    """
    trace = current().trace
    run = steps_of if trace is None else trace.convert(steps_of)
    collected, states, lengths = run(decoder, inits, max_step_num, impute_finished, kwargs)
    outputs, states = decoder.finalize(collected, states, lengths)
    if not output_time_major:
        outputs = _map(lambda x: transpose(x, [1, 0, *range(2, x.ndim)]), outputs)
    return (outputs, states, lengths) if return_length else (outputs, states)


def steps_of(decoder: Any, inits: Any, max_step_num: Any, impute_finished: bool, kwargs: Any) -> Any:
    """Run through the steps; converted with the code that calls it."""
    inputs, states, finished = decoder.initialize(inits)
    lengths = cast_to(finished, dtypes.int64) * 0
    time = full([1], 0, "int64")
    outputs, inputs, states, finished, lengths = step_of(
        decoder, time, inputs, states, finished, lengths, impute_finished, kwargs
    )
    rows = [[part] for part in _flat(outputs)]
    turn = 1
    over = all_of(finished) if max_step_num is None else all_of(finished) | (turn > max_step_num)
    while not over:
        time = time + 1
        made, inputs, states, finished, lengths = step_of(
            decoder, time, inputs, states, finished, lengths, impute_finished, kwargs
        )
        parts = _flat(made)
        for i in range(len(parts)):
            rows[i].append(parts[i])
        turn = turn + 1
        over = all_of(finished) if max_step_num is None else all_of(finished) | (turn > max_step_num)
    return _like(outputs, [stack(row) for row in rows]), states, lengths


steps_of.__dy2st_convert__ = True  # type: ignore[attr-defined]


def step_of(
    decoder: Any, time: Tensor, inputs: Any, states: Any, finished: Tensor, lengths: Tensor, impute_finished: bool,
    kwargs: Any,
) -> Any:  # fmt: skip
    """Return (outputs, inputs, states, finished, lengths) after one step; converted with the code that calls it."""
    outputs, after, inputs, ended = decoder.step(time, inputs, states, **kwargs)
    if decoder.tracks_own_finished:
        return outputs, inputs, after, ended, after.lengths if hasattr(after, "lengths") else lengths
    after = _held(finished, states, after) if impute_finished else after
    return outputs, inputs, after, ended | finished, lengths + cast_to(logical_not(finished), dtypes.int64)


step_of.__dy2st_convert__ = True  # type: ignore[attr-defined]


def _with_beams(x: Tensor, beams: int) -> Tensor:
    return expand(x.unsqueeze(1), [x.shape[0], beams, *x.shape[1:]])


def _merged(x: Tensor) -> Tensor:
    return reshape(x, [-1, *x.shape[2:]])


def _of_beams(x: Tensor, parents: Tensor) -> Tensor:
    """Return x [batch, beams, ...] of the beams that live on."""
    rows = reshape(parents, [*parents.shape, *[1] * (x.ndim - 2)])
    return take_along_axis(x, expand(rows, [*parents.shape, *x.shape[2:]]), 1)


def _held(finished: Tensor, before: Any, after: Any) -> Any:
    parts = [
        where(reshape(finished, [-1, *[1] * (b.ndim - 1)]), b, a)
        for b, a in zip(_flat(before), _flat(after), strict=True)
    ]
    return _like(after, parts)


def _map(function: Any, value: Any) -> Any:
    return _like(value, [function(part) for part in _flat(value)])


def _flat(value: Any) -> list[Any]:
    """Return the tensors in nested tuples, lists and dicts."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (list, tuple)):
        return [value]
    return [part for one in value for part in _flat(one)]


def _like(value: Any, parts: list[Any]) -> Any:
    """Return other tensors, as many as `value` has, nested as those."""
    return _nested(value, iter(parts))


def _nested(value: Any, parts: Any) -> Any:
    if isinstance(value, dict):
        return {key: _nested(one, parts) for key, one in value.items()}
    if not isinstance(value, (list, tuple)):
        return next(parts)
    made = [_nested(one, parts) for one in value]
    return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)


def _first(value: Any) -> Tensor:
    return _flat(value)[0]
