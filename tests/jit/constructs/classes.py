"""Attributes of classes and of functions, and constructors that write to what is outside."""

import functools

from conversion_constructs.cases import NEG, POS, case, scenario

import dy2st as paddle


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
