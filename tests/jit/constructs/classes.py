"""Attributes of classes and of functions, constructors that write to what is outside, class patterns."""

import collections
import copy
import dataclasses
import functools

import dy2st as paddle
from tests.jit.constructs.cases import NEG, POS, case, scenario


def a_class(**attributes):
    return type("Shared", (), attributes)


def of(owner, *names):
    return lambda: [getattr(owner, name) for name in names]


@scenario(POS, NEG, POS, programs=2)
def counter_of_a_class():
    shared = a_class(calls=0)

    def forward(x):
        shared.calls += 1
        return x * shared.calls

    return forward, of(shared, "calls")


@scenario(POS, NEG, POS, holds="cond")
def class_attribute_set_in_branches():
    shared = a_class(mode="none", last=None)

    def forward(x):
        if x.sum() > 0:
            shared.mode = "up"
        else:
            shared.mode = "down"
        shared.last = x * 2
        return x, shared.mode, shared.last

    return forward, of(shared, "mode", "last")


@case(POS, NEG)
def class_whose_body_has_statements(x):
    class Made:
        weights, scale = [], 2
        for k in range(3):
            if k != 1:
                weights.append(k + scale)
        try:
            late = weights[7]
        except IndexError:
            late = -1

        def total(self, v):
            return sum(v * w for w in self.weights) * self.late if v.sum() > 0 else v * self.k

    return Made().total(x)


@scenario(POS, NEG, POS, programs=2)
def class_attribute_read_through_instance_and_subclass():
    shared = a_class(total=1)
    narrower = type("Narrower", (shared,), {})
    thing = shared()

    def forward(x):
        shared.total += 1
        return x * thing.total + narrower.total

    return forward, of(shared, "total")


@scenario(POS, NEG, POS)
def tensor_of_a_class():
    shared = a_class(scale=paddle.ones([2]))

    def forward(x):
        shared.scale = shared.scale * 2
        return x * shared.scale

    return forward, of(shared, "scale")


@scenario(POS, NEG, POS)
def list_of_a_class():
    shared = a_class(seen=[])

    def forward(x):
        if x.sum() > 0:
            shared.seen.append(x.sum())
        return x

    return forward, of(shared, "seen")


@scenario(POS, NEG, POS, programs=2)
def classmethod_that_counts():
    class Shared:
        scale = 2

        @classmethod
        def next(cls, x):
            cls.scale += 1
            return x * cls.scale

    return Shared.next, of(Shared, "scale")


@scenario(POS, NEG, POS, programs=2)
def decorator_that_counts():
    def counted(function):
        @functools.wraps(function)
        def call(x):
            call.calls += 1
            return function(x) * call.calls

        call.calls = 0
        return call

    @counted
    def twice(x):
        return x * 2

    def forward(x):
        return twice(x) + 1

    return forward, of(twice, "calls")


@scenario(POS, NEG, POS, programs=2)
def constructor_that_counts_and_registers():
    class Item:
        made = 0
        registry = []

        def __init__(self, value):
            Item.made += 1
            Item.registry.append(Item.made)
            self.value = value

    def forward(x):
        return Item(x * 2).value * Item.made

    return forward, of(Item, "made", "registry")


@scenario(POS, NEG, POS)
def constructor_of_a_base_class_that_logs():
    log = []

    class Base:
        def __init__(self, value):
            log.append("made")
            self.value = value

    class Item(Base):
        def __init__(self, value):
            super().__init__(value * 2)
            self.more = self.value + 1
            self.temporary = 1
            del self.temporary

    def forward(x):
        item = Item(x)
        return item.value * item.more, sorted(vars(item)), hasattr(item, "temporary")

    return forward, lambda: list(log)


@case(POS, NEG)
def class_statement_with_attributes(x):
    class Local:
        by = 3
        kept = x

    Local.by += 1
    Local.kept = Local.kept * 2
    return x * Local.by + Local.kept


class Powers:
    def power(self, x, k):
        return x**k

    square = functools.partialmethod(power, k=2)


POWERS = Powers()


@case(POS, NEG)
def partial_methods(x):
    return POWERS.square(x) + Powers.square(POWERS, x)


@dataclasses.dataclass
class Pair:
    mode: str = "plain"
    by: object = 1


@case(POS, NEG)
def class_pattern_of_an_object_made_in_a_branch(x):
    pair = Pair("up", x) if x.sum() > 0 else Pair("down", x * 2)
    match pair:
        case Pair(mode="up", by=by):
            return by
        case Pair(by=by):
            return by * 3


@case(POS, NEG)
def class_pattern_inside_of_a_tuple(x):
    pair = Pair("up", x) if x.sum() > 0 else 5
    match (x, pair):
        case (first, Pair(by=by)):
            return first + by
        case (first, number):
            return first * number


@case(POS, NEG)
def class_pattern_of_objects_inside_of_each_other(x):
    pair = Pair("outer", Pair("inner", x))
    if x.sum() > 0:
        pair.by.by = x * 2
    match pair:
        case Pair(by=Pair(mode="inner", by=by)):
            return by


@scenario(POS, NEG, POS, programs=2)
def class_pattern_of_an_object_outside():
    outside = Pair()

    def forward(x):
        match outside:
            case Pair(mode="plain"):
                found = x
            case Pair(mode="other", by=by):
                found = x * by
        outside.mode = "other"
        return found

    return forward, of(outside, "mode")


@case(POS, NEG)
def exception_with_attributes(x):
    class Refused(Exception):
        def __init__(self, code, message):
            super().__init__(message)
            self.code = code

    try:
        if x.sum() > 0:
            raise Refused(3, "bad")
    except Refused as error:
        return x * error.code, str(error)
    return x, ""


@case(POS, NEG)
def deque_that_drops_at_its_other_end(x):
    last = collections.deque(maxlen=2)
    for v in x:
        last.append(v)
        if v > 2:
            last.appendleft(v * 2)
    return list(last), len(last)


class Bag:
    def __init__(self, **given):
        self.by = 1
        self.__dict__.update(given)


@case(POS, NEG)
def attributes_as_a_dict(x):
    bag = Bag(kept=x)
    bag.more = x
    if x.sum() > 0:
        bag.kept = x * 2
    return bag.kept, sorted(vars(bag)), sorted(bag.__dict__), vars(bag)["more"]


@case(POS, NEG)
def attribute_whose_name_differs_between_branches(x):
    bag = Bag(half=0.5)
    name = "by" if x.sum() > 0 else "half"
    setattr(bag, name, getattr(bag, name) * 2)
    return x * getattr(bag, name), hasattr(bag, name), hasattr(bag, "other")


@scenario(POS, NEG, POS, programs=3)
def attribute_that_is_missing_at_first():
    bag = Bag()

    def forward(x):
        if not hasattr(bag, "calls"):
            bag.calls = 0
        bag.calls += 1
        bag.others = getattr(bag, "others", 10) + 1
        return x * bag.calls + bag.others

    return forward, lambda: [getattr(bag, "calls", None), getattr(bag, "others", None)]


@case(POS, NEG)
def library_code_sees_what_was_written(x):
    pair = Pair("up", x)
    pair.mode = "down"
    if x.sum() > 0:
        pair.by = x * 2
    other = dataclasses.replace(pair, mode=pair.mode + "wards")
    return other.by, other.mode, copy.copy(pair).mode


@case(POS, NEG)
def special_methods_see_what_was_written(x):
    one, two = Pair("up"), Pair("up")
    same = one == two
    two.by = 2
    return x, same, one == two, repr(two), f"{two}", dataclasses.asdict(two)
