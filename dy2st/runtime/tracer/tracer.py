"""The Tracer is a Recorder that also runs Python: what converted code does with symbolic values ends here."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

from dy2st.errors import NeedsPythonValue
from dy2st.formatting import Part
from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Value
from dy2st.ir.types import Type
from dy2st.kinds import is_iterator
from dy2st.ops.core.base import Op
from dy2st.runtime.eager.side_effect_check import refuse_outside
from dy2st.runtime.eager.tensor import Tensor, needs_value
from dy2st.runtime.tracer.access import boolean_ops
from dy2st.runtime.tracer.access.absent_attributes import of_class_alone, real_attribute
from dy2st.runtime.tracer.access.borrow_tracking import BorrowTracker
from dy2st.runtime.tracer.access.items import users_method
from dy2st.runtime.tracer.access.symbolic_list import joined_items, widened
from dy2st.runtime.tracer.builtins.calls import callable_for
from dy2st.runtime.tracer.builtins.iteration import rebuilt
from dy2st.runtime.tracer.builtins.object_text import text_of_object
from dy2st.runtime.tracer.control_flow.assert_raise import RaisedException
from dy2st.runtime.tracer.control_flow.conditional import predicate, switch
from dy2st.runtime.tracer.control_flow.recursion import ActiveCall, RecursiveFunction
from dy2st.runtime.tracer.converted_code_api import HELPER
from dy2st.runtime.tracer.effects.container_state import CONTAINERS, ContainerState
from dy2st.runtime.tracer.effects.escape_analysis import refuse_shared
from dy2st.runtime.tracer.effects.reach import seen_attributes
from dy2st.runtime.tracer.effects.union_cast import recast
from dy2st.runtime.tracer.loops.generators import PushIterator
from dy2st.runtime.tracer.loops.loop_state_cache import LoopStateNotes
from dy2st.runtime.tracer.recording.variant_recorder import VariantRecorder
from dy2st.runtime.tracer.values.abstract import Const, Number, OneOf, TensorLike
from dy2st.runtime.tracer.values.container_classes import CONTENT, bare, copied, like, put_part, settings
from dy2st.runtime.tracer.values.flatten import alternative
from dy2st.runtime.tracer.values.object_attributes import attributes
from dy2st.runtime.tracer.values.sentinels import MISSING, Key
from dy2st.runtime.tracer.values.symbolic_iterable import SymbolicIterable
from dy2st.runtime.tracer.values.symbolic_iterator import PulledIterator, PulledSource, check_moved
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.symbolic_string import text_part
from dy2st.runtime.tracer.values.unbound import UnboundLocal
from dy2st.runtime.tracer.values.union import SymbolicList, Variant


class Tracer(ContainerState, VariantRecorder):
    """Record a run of Python code."""

    def __init__(self, builder: Builder):
        ContainerState.__init__(self)
        VariantRecorder.__init__(self, builder)
        self.borrows = BorrowTracker(self)
        self.read: dict[Key, Any] = {}
        """What was read from real objects, under the key with which a write would hide it."""
        self.attribute_dicts: dict[int, tuple[Any, Any]] = {}
        """What `vars` and `__dict__` gave, by id, each with its object."""
        self.copies: dict[int, tuple[Any, Any]] = {}
        """What stands for containers with one of several things in them in calls, by id, and its items."""
        self.natively = 0
        """How many calls of code that is not converted run now, inside of each other."""
        self.beneath: dict[int, Any] = {}
        """What containers from outside hold that show what the trace wrote, by id."""
        self.classes_written = False
        """Whether an attribute of a class was set, perhaps in a trace that was given up since."""
        self.stand_in_objects: dict[int, tuple[Any, dict[str, Any]]] = {}
        """What stands for objects among the arguments, by id, and the attributes that they came with."""
        self.arrays: set[int] = set()
        """What stands for NumPy arrays among the arguments, by id."""
        self.mixed = False
        """Whether a tensor that a branch or turn leaves may need a gradient or not, as the run will have it."""
        self.attempts: list[Any] = []
        """The `try` statements in whose bodies the trace stands (convert_try)."""
        self.sites_before: dict[Any, int] = {}
        """How many sites each of them had when it was traced last, by the code of its body."""
        self.rebuilding = 0
        """How many lists inside of each other are being made of other values."""
        self.raised_at: dict[int, tuple[BaseException, Any]] = {}
        """Where exceptions were raised first, by id."""
        self.refused: NeedsPythonValue | None = None
        """What a test of a statement that stays raised; not to be lost where the user's code catches everything."""
        self.iterations: dict[Value, Any] = {}
        """For each number of an iteration: how many iterations its loop has."""
        self.blamed: frozenset[str] | None = None
        """The extents that code which is not converted was handed last when it raised."""
        self.most_unrolled: int | None = None
        """The most iterations of a loop that are recorded one after the other, where there is such a limit."""
        self.loop_notes = LoopStateNotes()
        """What loops began with."""
        self.active: list[ActiveCall] = []
        self.recursions: list[RecursiveFunction] = []
        self.functions: dict[str, Block] = {}
        """Functions of the Program beside its entry."""
        self.root.functions = self.functions
        self.raised: list[RaisedException] = []
        """The exceptions that the Program raises under a label."""
        self.filters = warnings.filters
        """What is in force outside of the function; `catch_warnings` inside puts another list in its place."""

    # ---- symbolic or not -------------------------------------------------------------------------------------------
    def is_symbolic(self, x: Any) -> bool:
        """Return whether only the run will tell the truth of `x`."""
        if isinstance(x, CONTAINERS):
            return isinstance(self.content(x), (SymbolicList, Variant))
        return isinstance(x, (Tensor, Scalar, Variant, SymbolicList))

    def truth(self, x: Any) -> Any:
        """Return `bool(x)`, symbolic where x is."""
        if not self.is_symbolic(x):
            return bool(self.content(x))
        content = self.content(x)
        if isinstance(content, SymbolicList):
            return Scalar(self.emit("list_len", [content.value])) > 0
        value = predicate(self, content)
        return Scalar(value) if hasattr(value.type, "kind") else self.item(self.wrap(value))

    def as_scalar(self, x: Any) -> Scalar:
        """Return a number as a symbolic number."""
        return x if isinstance(x, Scalar) else Scalar(self.scalar(x))

    def both(self, condition: Any, more: Callable[[], Any]) -> Any:
        """Return `condition and more()`, symbolic where either is."""
        other = more()
        if not self.is_symbolic(other):
            return condition if other else False
        if not self.is_symbolic(condition):
            return other if condition else False
        return self.truth(condition) & self.truth(other)

    def apply_to_variants(self, op: Op, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
        at = next(i for i, x in enumerate(operands) if isinstance(x, Variant))
        return switch(
            self,
            operands[at],
            lambda x: self.apply(op, (*operands[:at], x, *operands[at + 1 :]), attributes),
        )

    def each(self, variant: Variant, use: Callable[[Any], Any]) -> Any:
        """Return what `use` gives for the alternative that a variant is when the Program runs."""
        return switch(self, variant, use)

    def text_of_object(self, x: Any, conversion: str, spec: str) -> tuple[Part, list[Value]]:
        return text_of_object(self, x, conversion, spec)

    def text_of_alternative(self, x: Variant, tag: int, conversion: str, spec: str) -> Part:
        """Return the part of a text for what a variant is under a tag; its operand is the payload."""
        if not isinstance(x.alternatives[tag], (Const, Number, TensorLike)):
            raise needs_value("the text of a value that is one of several things")
        with self.inside(self.builder.child(), {}):  # only to see what it looks like
            return text_part(self, alternative(self, x, tag), conversion, spec)[0]

    def needs_python(self, message: str) -> Exception:
        """Return the error for a symbolic value whose Python value was asked for."""
        return needs_value(message)

    # ---- what Python does -------------------------------------------------------------------------------------------
    def callable(self, f: Any) -> Callable[..., Any]:
        """Return what to call in place of `f`."""
        return callable_for(self, f)

    def if_exp(self, test: Any, then: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
        """Return a conditional expression's value."""
        return HELPER.if_exp(test, then, orelse)

    def item_of(self, x: Any, i: Any) -> Any:
        """Return `x[i]`."""
        return HELPER.item(x, i)

    def attribute_of(self, x: Any, name: str) -> Any:
        """Return `x.name`."""
        return HELPER.attr(x, name)

    def compared(self, a: Any, sign: str, b: Any) -> Any:
        """Return what a comparison gives."""
        return boolean_ops.compare_one(self, a, sign, b)

    def negated(self, x: Any) -> Any:
        """Return `not x`."""
        return boolean_ops.not_(self, x)

    def before_write(self, t: Any) -> None:
        refuse_shared(self, t)

    # ---- the log ---------------------------------------------------------------------------------------------------
    def current(self, key: Key) -> Any:
        """Return what stands under a key now: the last write, or what the real object has."""
        found = self.log.get(key)
        return self.original(key) if found is MISSING else found

    def original(self, key: Key) -> Any:
        """Return what the real object has under a key."""
        if key[0] == "rng":
            return Scalar(self.rng_draw())
        if key[0] == "seed":
            return Scalar(self.rng_seed())
        owner = self.log.objects[key[1]]
        if key[0] == "data" and isinstance(owner, Variant):
            return owner.as_made()
        if key[0] == "data":
            return self.wrap(self.value_of(owner), owner.stop_gradient)
        if key[0] == "grad":
            return self.gradient_so_far(owner)
        if key[0] in ("items", "tail"):
            return [] if key[0] == "tail" else copied(owner)
        return self.real_attribute(owner, key[2])

    def content(self, x: Any) -> Any:
        """Return the content of a container as it stands in the trace, also of what `vars` gave."""
        found = self.attribute_dicts.get(id(x))
        return super().content(x) if found is None else seen_attributes(self, found[1])

    def store(self, x: Any, content: Any) -> None:
        """Write the content of a container; of what `vars` gave, the attributes of the object."""
        found = self.attribute_dicts.get(id(x))
        if found is None:
            super().store(x, content)
            return
        before = self.attributes_of(found[1])
        for name in dict.fromkeys((*before, *content)):
            value = content.get(name, MISSING)
            if value is not before.get(name, MISSING):
                self.log_attribute(found[1], name, UnboundLocal(name) if value is MISSING else value)

    def real_attribute(self, owner: Any, name: str) -> Any:
        """Return an attribute of a real object, the placeholder when it has none."""
        known = id(owner) in self.made.objects or self.came_with(owner, name)
        if name not in attributes(owner) and of_class_alone(owner, name):
            if not known:
                self.note_absent(owner, name)
            return UnboundLocal(name)
        value = real_attribute(owner, name)
        value = value if known else self.note_attribute(owner, name, value)
        return UnboundLocal(name) if value is MISSING else value

    def note_absent(self, owner: Any, name: str) -> None:
        """Note that a trace depends on a real object having no attribute of its own where its class has one."""

    def note_settings(self, x: Any) -> None:
        """Note that the package's code reads the settings of an object."""

    def came_with(self, owner: Any, name: str) -> bool:
        """Return whether an attribute is part of an argument: an object that was taken apart."""
        found = self.stand_in_objects.get(id(owner))
        return found is not None and name in found[1]

    def commit_joined(self, key: Key, value: Any) -> None:
        """Write what the blocks of a branch or loop left under a key."""
        owner = self.log.owner(key)
        if key[0] == "items":
            value = like(owner, value)
        self.log.set(key, owner, value)
        if key[0] == "items":
            self.show(owner, value)
        elif key in self.attributes_before:
            self.show_attribute(key, value)

    def recast(self, x: Variant, t: OneOf, kind: Type, places: Sequence[int]) -> Value:
        """Return a variant as one whose alternatives are made of other values."""
        return recast(self, x, t, kind, places)

    def widened(self, items: SymbolicList, element: Any) -> SymbolicList:
        """Return a list of unknown length with elements that also fit an abstract value."""
        return widened(self, items, element)

    def rebuilt(self, items: SymbolicList, element: Any) -> SymbolicList:
        """Return a list of unknown length whose elements are made of other values, as an abstract value says."""
        return rebuilt(self, items, element)

    def spliced(self, items: list[Any]) -> Any:
        made = joined_items(self, items)
        if made.element.holds_objects:
            self.borrows.give_up()
        return made

    def iterate(self, x: Any) -> Iterable[Any]:
        """Return a Python iterable over `x` as it stands in the trace."""
        content = self.content(x)
        if isinstance(content, SymbolicList | SymbolicIterable):
            text = "only the run will tell how long this is, so Python cannot run through it"
            raise needs_value(text, needed=[content])
        if isinstance(content, Tensor):
            if not isinstance(content.shape[0], int):
                text = "only the run will tell how long this tensor is, so Python cannot run through it"
                raise needs_value(text, needed=content.shape[:1])
            return [content[i] for i in range(content.shape[0])]
        if isinstance(content, PulledSource):
            return self.iterator(content)
        if isinstance(content, PushIterator):
            return content.pull()
        if is_iterator(content):
            refuse_outside(self.external, content)
            check_moved(self, content)
        elif (own := users_method(self, x if isinstance(x, CONTAINERS) else content, "__iter__")) is not None:
            return own()
        return list(content) if isinstance(content, CONTAINERS) else content

    def iterator(self, pulled: PulledSource) -> PulledIterator:
        """Return what stands for an iterator from outside."""
        self.made.is_pulling = True
        if id(pulled) not in self.made.iterators:
            self.made.iterators[id(pulled)] = PulledIterator(self, pulled), None
        return self.made.iterators[id(pulled)][0]

    def new_object(self, kind: type[Any], attributes: dict[str, Any]) -> Any:
        """Return an instance that is made of these parts in the trace: attributes, and what a container holds."""
        made = bare(kind)
        for name, value in attributes.items():
            if name == CONTENT:
                self.store(made, self.content(value))
                continue
            if name in settings(made):
                put_part(made, name, value)
                continue
            if isinstance(value, UnboundLocal):
                continue
            self.log.set(("attr", id(made), name), made, value)
            self.show_attribute(("attr", id(made), name), value)
        self.made.note(made, self.builder)
        self.made.remade.add(id(made))
        return made

    @contextmanager
    def carrying(self, get: Callable[[], Any]) -> Generator[None]:
        """Trace a branch or the iteration of a loop, which hands over the variables that `get` reads."""
        self.carried[id(self.builder)] = get
        try:
            yield
        finally:
            del self.carried[id(self.builder)]

    def checkpoint(self) -> Any:
        """Remember where the trace stands."""
        self.leaving()
        return self.builder.checkpoint(), dict(self.log.overlays[-1]), self.borrows.mark(), len(self.made.generators)

    def rollback(self, mark: Any) -> None:
        """Forget what was recorded since `mark`."""
        self.refused = None
        self.asked: NeedsPythonValue | None = None
        self.builder.rollback(mark[0])
        written = list(self.log.overlays[-1])
        self.log.overlays[-1].clear()
        self.log.overlays[-1].update(mark[1])
        self.left(written)
        self.borrows.reset(mark[2])
        self.made.dropped += [reference() for reference in self.made.generators[mark[3] :]]
        del self.made.generators[mark[3] :]

    @contextmanager
    def inside(self, builder: Builder, overlay: dict[Key, Any]) -> Generator[None]:
        """Stand in a block, with its writes visible and shown, for the length of a `with`."""
        try:
            with super().inside(builder, overlay):
                self.entered(overlay)
                yield
                self.leaving()
        finally:
            self.left(list(overlay))

    def raise_later(self, error: BaseException) -> None:
        """Record that what was just raised is raised where the Program comes to this point."""
        raise error

    def has_written(self) -> bool:
        """Return whether a run that raises here would leave something written that has to be noted; not by hand."""
        return False

    def keep_raised(self, error: BaseException) -> tuple[int, list[Value]]:
        """Keep an exception that the Program raises; return its label and what its `raise` hands over; not by hand."""
        raise error

    def convert(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose control flow is recorded; the plain recorder runs it as it is."""
        return function
