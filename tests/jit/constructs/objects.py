"""Attributes and side effects: layers, user objects, globals, nonlocals, state across calls, autograd inside."""

import types

import dy2st as paddle
from dy2st import nn
from tests.jit.constructs.cases import NEG, POS, case, f, n, s, scenario

TOTAL = 0


class Counter(nn.Layer):
    def __init__(self):
        super().__init__()
        self.count = 0
        self.history = []
        self.table = {}
        self.last = None
        self.weight = self.create_parameter([2], default_initializer=nn.initializer.Constant(2.0))
        self.register_buffer("running", paddle.zeros([2]))


def state_of(layer, *names):
    return lambda: [getattr(layer, name) for name in names]


@scenario(POS, NEG, POS, holds="cond", programs=2)
def attribute_counter():
    layer = Counter()

    def forward(x):
        if x.sum() > 0:
            layer.count += 1
        return x * layer.weight

    return forward, state_of(layer, "count", "weight")


@scenario(POS, NEG, holds=(), programs=1)
def attribute_set_to_tensor():
    layer = Counter()

    def forward(x):
        layer.last = x * 2
        return layer.last + 1

    return forward, state_of(layer, "last")


@scenario(POS, NEG, POS, holds="cond")
def buffer_update_in_branch():
    layer = Counter()

    def forward(x):
        if x.sum() > 0:
            layer.running = layer.running * 0.9 + x.detach() * 0.1
        return x + layer.running

    return forward, state_of(layer, "running")


@scenario(POS, NEG, POS, holds="cond")
def buffer_write_in_place():
    layer = Counter()

    def forward(x):
        with paddle.no_grad():
            if x.sum() > 0:
                layer.running[0] = 5.0
            layer.running.add_(paddle.ones([2]))
        return x + layer.running

    return forward, state_of(layer, "running")


@scenario(POS, NEG)
def append_to_attribute_list():
    layer = Counter()

    def forward(x):
        layer.history.append(x.sum())
        layer.history.append("call")
        return x

    return forward, state_of(layer, "history")


@scenario(POS, NEG, POS, holds="cond")
def append_in_branch_to_attribute():
    layer = Counter()

    def forward(x):
        if x.sum() > 0:
            layer.history.append(x * 2)
        return x

    return forward, state_of(layer, "history")


@scenario(POS, NEG, POS, programs=2)  # an empty dict, then one with a tensor
def dict_attribute_written():
    layer = Counter()

    def forward(x):
        layer.table["last"] = x * 2
        return x

    return forward, state_of(layer, "table")


@scenario((POS, n(3)), (POS, n(0)), holds="counted_while")
def attribute_in_loop():
    layer = Counter()

    def forward(x, k):
        layer.last = x
        for _ in range(k):
            layer.last = layer.last * layer.weight
        return layer.last

    return forward, state_of(layer, "last", "weight")


@scenario(POS, NEG, programs=1)
def closure_list():
    calls = []

    def forward(x):
        calls.append(x.sum())
        return x * 2

    return forward, lambda: calls


@scenario(POS, NEG, programs=2)
def nonlocal_counter():
    count = 0

    def forward(x):
        nonlocal count
        count += 1
        return x * 2

    return forward, lambda: count


@scenario(POS, NEG, holds="cond", programs=1)
def nonlocal_tensor():
    total = paddle.zeros([2])

    def forward(x):
        nonlocal total
        if x.sum() > 0:
            total = total + x.detach()
        return x + total

    return forward, lambda: total


@scenario(POS, NEG, programs=2)
def global_counter():
    def forward(x):
        global TOTAL
        TOTAL = TOTAL + 1
        return x * 2

    scope = {**globals(), "TOTAL": 0}  # each build counts for itself
    return types.FunctionType(forward.__code__, scope, "forward"), lambda: scope["TOTAL"]


@scenario(POS, NEG, POS, holds="cond", programs=2)  # `best` is None in the first call, a tensor in the others
def user_object():
    class Log:
        def __init__(self):
            self.best = None

        def note(self, v):
            if v.sum() > 0:
                self.best = v
            return v

    log = Log()
    return lambda x: log.note(x) * 2, lambda: log.best


@scenario(POS, NEG, POS)
def object_attribute_deleted():
    layer = Counter()

    def forward(x):
        layer.extra = x
        y = layer.extra * 2
        del layer.extra
        return y

    return forward, lambda: hasattr(layer, "extra")


@scenario(POS, NEG)
def layer_list():
    layers = nn.LayerList([nn.Linear(2, 2, weight_attr=None) for _ in range(6)])
    for i, layer in enumerate(layers):
        layer.weight.set_value(paddle.full([2, 2], 0.1 * (i + 1)))

    def forward(x):
        for i in range(6):
            x = layers[i](x)
        for layer in layers:
            x = x + layer(x)
        return x

    return forward, lambda: [p.grad for p in layers.parameters()]


@scenario(POS, NEG, holds="cond")
def sublayer_in_branch():
    one, two = nn.Linear(2, 2), nn.Linear(2, 2)
    for layer, k in ((one, 0.5), (two, 0.25)):
        layer.weight.set_value(paddle.full([2, 2], k))

    def forward(x):
        return one(x) if x.sum() > 0 else two(x)

    return forward, lambda: [one.weight.grad, two.weight.grad, one.bias.grad, two.bias.grad]


@scenario(f([[1, 2], [3, 5]]), f([[0, 2], [3, -5]]))
def batch_norm_buffers():
    norm = nn.BatchNorm1D(2)
    return lambda x: norm(x), lambda: [norm._mean, norm._variance, norm.weight.grad]


@case(POS, NEG, holds="cond")
def grad_inside(x):
    y = (x * x).sum() if x.sum() > 0 else (x * x * x).sum()
    (g,) = paddle.grad(y, x, create_graph=True)
    return g


@case((s(2),), (s(1.5),), holds="while_loop")
def grad_of_while_inside(x):
    v = x
    while v < 8:
        v = v**2
    (g,) = paddle.grad(v, x)
    return g


@scenario((f([[1, 2]]), f([[1]])), (f([[2, 1]]), f([[0]])), programs=2)  # without gradients, then with cleared ones
def train_step():
    net = nn.Linear(2, 1)
    net.weight.set_value(paddle.full([2, 1], 0.5))
    optimizer = paddle.optimizer.SGD(0.1, parameters=net.parameters())

    def step(x, y):
        loss = ((net(x.detach()) - y.detach()) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss.detach()

    return step, lambda: [net.weight, net.bias]


@case(POS, NEG, holds="cond")
def stop_gradient_inside(x):
    y = x * 2
    y.stop_gradient = True
    if x.sum() > 0:
        z = y + x
    else:
        z = y * x
    return z


@case(POS, NEG, holds="cond")
def detached_in_one_branch(x):
    y = x.detach() if x.sum() > 0 else x * 3
    return y * x


@scenario((POS, 0.5), (POS, 0.25), (POS, 0.125), programs=2)
def python_number_opens():
    def forward(x, k):
        return x * k, k * 2

    return forward, lambda: None


@scenario((POS, "sum"), (POS, "mean"), (POS, "sum"), programs=2)
def string_retraces():
    def forward(x, how):
        return x.sum() if how == "sum" else x.mean()

    return forward, lambda: None


@scenario((POS, True), (POS, False), programs=2)
def bool_retraces():
    def forward(x, flag):
        return x * 2 if flag else x

    return forward, lambda: None


@scenario(POS, NEG, POS)
def generator_object_attribute():
    class State:
        items = (1, 2, 3)

        def __init__(self):
            self.step = paddle.zeros([], "int64")

    state = State()

    def forward(x):
        state.step = state.step + 1
        for k in state.items:
            x = x + k
        return x * state.step

    return forward, lambda: state.step


@scenario(POS, NEG, holds="cond", programs=1)
def inner_static_function():
    @paddle.jit.to_static
    def inner(v):
        return v * 2 if v.sum() > 0 else v

    @paddle.jit.not_to_static
    def plain(v):
        return v + 1

    return lambda x: inner(x) + plain(x), lambda: None


@scenario(POS, NEG)
def forward_hooks():
    seen = []
    layer = nn.Linear(2, 2)
    layer.weight.set_value(paddle.full([2, 2], 0.5))
    layer.register_forward_post_hook(lambda layer, inputs, output: output * 2)
    layer.register_forward_pre_hook(lambda layer, inputs: (inputs[0] + 1,))
    return lambda x: layer(x), lambda: seen
