"""Copies of hand-built Programs: as they are, or for testing.

A copy for testing has, for each value that `ProgramRecorder.in_test` named (what dropout and batch norm give in
training), what it says in its place, and none of the writes that belong to training.
"""

from __future__ import annotations

from collections.abc import Collection

from dy2st.ir.builder import Builder
from dy2st.ir.clone import clone_operation
from dy2st.ir.program import Block, Operation, Value
from dy2st.static.recorder import ForTest, ProgramRecorder, State
from dy2st.static.testing import training_only
from dy2st.static.variable import Variable

Mapping = dict[Value, Value]


def clone_recorder(source: ProgramRecorder, for_test: bool) -> ProgramRecorder:
    """Return a recorder of a copy of the Program; values of the original are known to it."""
    mapping: Mapping = {}
    forms = source.test_forms if for_test else {}
    skipped = source.trained.union(*(form.skipped for form in forms.values())) if for_test else set[int]()
    dead = training_only(source, forms, skipped) if for_test else set[Operation]()
    block = _clone_block(source.root.block, mapping, forms, dead)
    made = ProgramRecorder(Builder(block, names=source.root.names))
    made.moved = {**{old: mapping[new] for old, new in source.moved.items() if new in mapping}, **mapping}
    made.functions.update(source.functions)
    made.needs = {mapping[v] for v in source.needs if v in mapping}
    made.feeds = dict(source.feeds)
    made.feed_places = dict(source.feed_places)
    made.named = dict(source.named)
    made.for_test = for_test or source.for_test
    made.rng_arguments = {name: mapping[v] for name, v in source.rng_arguments.items()}
    made.stores = {name: mapping[v] for name, v in source.stores.items()}
    made.log.objects = dict(source.log.objects)
    if not for_test:
        made.trained = set(source.trained)
        made.training_operations = {
            copy
            for old, copy in zip(source.root.block.operations, block.operations, strict=True)
            if old in source.training_operations
        }
        made.test_forms = _moved_forms(source, mapping)
    for state in source.states.values():
        made.keep_state(State(state.name, mapping[state.value], state.tensor, state.source))
    for key, written in source.log.overlays[0].items():
        if len(key) > 1 and key[1] in skipped:
            continue
        made.log.set(key, source.log.owner(key), _moved(written, mapping, made))
    return made


def _moved(written: object, mapping: Mapping, recorder: ProgramRecorder) -> object:
    """Return what the log of the copy has for an entry of the original's."""
    if isinstance(written, Variable):
        return Variable(mapping[written.payload], written.stop_gradient, recorder)
    value = getattr(written, "value", None)
    return type(written)(mapping[value]) if isinstance(value, Value) else written  # type: ignore[call-arg]


def _clone_block(
    block: Block, mapping: Mapping, forms: dict[Value, ForTest], dead: Collection[Operation] = ()
) -> Block:
    """Return a copy of a block in which test forms stand for what they replace and `dead` operations are left out."""
    copy = Block()
    for argument in block.arguments:
        mapping[argument] = copy.add_argument(argument.type, argument.name)
    for operation in block.operations:
        if operation not in dead:
            copy.operations.append(_clone_operation(operation, copy, mapping, forms))
        for result in operation.results:
            form = forms.get(result)
            if form is not None:
                copy.operations += [_clone_operation(o, copy, mapping, forms) for o in form.operations]
                mapping[result] = mapping[form.value]
    copy.results = [mapping[v] for v in block.results]
    return copy


def _clone_operation(operation: Operation, into: Block, mapping: Mapping, forms: dict[Value, ForTest]) -> Operation:
    return clone_operation(operation, into, mapping, lambda block: _clone_block(block, mapping, forms))


def _moved_forms(source: ProgramRecorder, mapping: Mapping) -> dict[Value, ForTest]:
    """Return the test forms in terms of the copy's values."""
    found: dict[Value, ForTest] = {}
    for value, form in source.test_forms.items():
        if value not in mapping:
            continue
        inner = dict(mapping)
        operations = tuple(_clone_operation(o, mapping[value].block, inner, {}) for o in form.operations)
        found[mapping[value]] = ForTest(operations, inner[form.value], form.skipped)
    return found
