"""Loss curves of training that is spread over processes, a line each: `way | how it is laid out: losses`.

With the same global batch each way has the curve of one process. Sizes that do not fit, and ranks that disagree, are
errors that say so.
"""

import sys

import numpy as np

import dy2st as paddle
from dy2st import distributed as dist
from dy2st import nn
from dy2st.distributed import fleet
from dy2st.distributed.fleet import meta_parallel as mp
from dy2st.distributed.sharding import group_sharded_parallel

dist.init_parallel_env()
RANK, SIZE = dist.get_rank(), dist.get_world_size()
STEPS = 4


def begin(**degrees):
    """Lay the processes out; return which rows of a batch this one has."""
    strategy = fleet.DistributedStrategy()
    if SIZE > 1:
        strategy.hybrid_configs = {f"{axis}_degree": degree for axis, degree in degrees.items()}
    strategy.pipeline_configs = {"accumulate_steps": 2}
    fleet.init(is_collective=True, strategy=strategy)
    ways = fleet.get_hybrid_communicate_group()
    paddle.seed(3)
    data = ways.group("dp", "sharding")
    return slice(data.rank, None, data.nranks)


def adam(net, clip=0.2):
    return paddle.optimizer.AdamW(
        0.05, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(clip) if clip else None
    )


def run_with(static, step):
    return paddle.jit.to_static(step, full_graph=True) if static else step


def say(way, degrees, losses):
    laid_out = ", ".join(f"{axis} {degree}" for axis, degree in degrees.items())
    if RANK == 0:
        sys.stdout.write(f"{way} | {laid_out}: {' '.join(f'{loss:.9g}' for loss in losses)}\n")


def mean(loss):
    loss = loss.detach()
    dist.all_reduce(loss, dist.ReduceOp.AVG)
    return float(loss)


# ---- sharded state ---------------------------------------------------------------------------------------------------
def sharded(level, static, accumulated=False, clip=0.2, scaled=False):
    rows = begin(sharding=SIZE)
    net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    scaler = paddle.amp.GradScaler(init_loss_scaling=8.0, incr_every_n_steps=2) if scaled else None
    model, optimizer, scaler = group_sharded_parallel(net, adam(net, clip), level, scaler)

    def step(x, y):
        parts = 2 if accumulated else 1
        losses = []
        for i in range(parts):  # each of them reduces what it derives
            mine = slice(i * (x.shape[0] // parts), (i + 1) * (x.shape[0] // parts))
            loss = ((model(x[mine]) - y[mine]) ** 2).mean() / parts
            (loss if scaler is None else scaler.scale(loss)).backward()
            losses.append(loss)
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()
        optimizer.clear_grad()
        return sum(losses)

    run, losses = run_with(static, step), []
    for number in range(STEPS):
        x = np.random.default_rng(number).normal(size=(16, 6)).astype("float32")
        if scaled and number == 1:
            x[3] = np.inf  # which one rank sees, and all leave the step out
        losses.append(mean(run(paddle.to_tensor(x[rows]), paddle.to_tensor((x[:, :1] * x[:, 1:2])[rows]))))
    kept = len(optimizer._accumulators)
    assert (kept == 6) == (SIZE == 1), kept
    if scaled:
        assert float(scaler.state_dict()["scale"][0]) == 8.0, scaler.state_dict()
        losses.pop(1)
    say(f"{level} static {static} accumulated {accumulated} clip {clip} scaled {scaled}", {"sharding": SIZE}, losses)


def stage_of_the_strategy():
    """`strategy.sharding` alone spreads state over all processes; stage 2 leaves gradients with who keeps them."""
    strategy = fleet.DistributedStrategy()
    strategy.sharding = True
    strategy.sharding_configs = {"stage": 2}
    fleet.init(is_collective=True, strategy=strategy)
    net = nn.Linear(3, 3)
    model, optimizer = fleet.distributed_model(net), fleet.distributed_optimizer(adam(net))
    model(paddle.ones([2, 3])).sum().backward()
    there = [p.grad is not None for p in net.parameters()]
    assert SIZE == 1 or there == ([True, False] if RANK == 0 else [False, True] if RANK == 1 else [False, False])
    optimizer.step()


# ---- weights in parts, stages ----------------------------------------------------------------------------------------
class Words(nn.Layer):
    def __init__(self):
        super().__init__()
        self.table, self.norm = mp.VocabParallelEmbedding(12, 8), nn.LayerNorm(8)
        self.first = mp.ColumnParallelLinear(8, 16, has_bias=True, gather_output=False)
        self.second = mp.RowParallelLinear(16, 8, input_is_parallel=True)
        self.whole = mp.RowParallelLinear(8, 8)
        self.joined = mp.ColumnParallelLinear(8, 8, has_bias=True)
        self.scores = mp.ColumnParallelLinear(8, 12, has_bias=True, gather_output=False)
        self.loss = mp.ParallelCrossEntropy()

    def forward(self, x, y):
        e = self.norm(self.table(x))
        e = e + self.second(paddle.tanh(self.first(e)))
        if e.sum() > -1000:
            e = e + self.joined(self.whole(e))
        return self.loss(self.scores(e), y).mean()


def words(number):
    x = np.random.default_rng(number).integers(0, 12, (16, 3))
    y = (x * 5 + 1) % 12
    y[0, 0] = -100
    return x, y


def in_parts(static, **degrees):
    rows = begin(**degrees)
    net = Words()
    model, optimizer = fleet.distributed_model(net), fleet.distributed_optimizer(adam(net))

    def step(x, y):
        loss = model(x, y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    run, losses = run_with(static, step), []
    for number in range(STEPS):
        x, y = words(number)
        losses.append(mean(run(paddle.to_tensor(x[rows]), paddle.to_tensor(y[rows]))))
    assert net.first.weight.shape == [8, 16 // max(1, degrees["mp"])]
    say(f"parts static {static}", degrees, losses)


def scores(table, x):
    return paddle.matmul(x, table.weight, transpose_y=True)


def in_stages(static, **degrees):
    rows = begin(**degrees)
    one, table = mp.LayerDesc, ("words", nn.Embedding)
    net = mp.PipelineLayer(
        [mp.SharedLayerDesc(*table, None, "weight", 12, 8), one(nn.Linear, 8, 16), paddle.tanh, one(nn.Linear, 16, 16),
         one(nn.ReLU), one(nn.Linear, 16, 8), mp.SharedLayerDesc(*table, scores, "weight", 12, 8)],
        loss_fn=nn.CrossEntropyLoss(),
    )  # fmt: skip
    optimizer = fleet.distributed_optimizer(adam(net))
    model = fleet.distributed_model(run_with(static, net))
    losses = []
    for number in range(STEPS):
        x, y = (paddle.to_tensor(t[:, 1][rows]) for t in words(number))
        losses.append(mean(model.train_batch((x, y), optimizer)))
    losses.append(mean(model.eval_batch((x, y))))
    say(f"stages static {static}", degrees, losses)


# ---- wrong use -------------------------------------------------------------------------------------------------------
def refused(kind, text, call):
    try:
        call()
    except kind as error:
        said = str(error)
    else:
        said = "nothing"
    assert text in said, f"{text!r} is not in {said}"


def wrong_use():
    begin(mp=SIZE)
    refused(ValueError, "do not share 7 evenly", lambda: mp.ColumnParallelLinear(4, 7))
    refused(ValueError, "do not share 7 evenly", lambda: mp.RowParallelLinear(7, 4))
    refused(ValueError, f"needs {SIZE + 1} processes, and the job has {SIZE}", lambda: begin(mp=SIZE + 1))
    refused(IndexError, "12", lambda: mp.VocabParallelEmbedding(12, 2)(paddle.to_tensor([12])))
    state = {"x": paddle.ones([2 + RANK])}
    refused(ValueError, "ranks disagree about dtype or shape of 'x'", lambda: dist.save_state_dict(state, sys.argv[1]))
    refused(ValueError, "ranks disagree about 'n'", lambda: dist.save_state_dict({"n": RANK}, sys.argv[1]))
    refused(FileNotFoundError, "no whole checkpoint", lambda: dist.load_state_dict({}, sys.argv[1]))
    begin(sharding=SIZE)
    net = nn.Linear(2, 2)
    optimizer = fleet.distributed_optimizer(adam(net))
    net(paddle.ones([1, 2])).sum().backward()
    refused(RuntimeError, "is that of this process alone", optimizer.step)
    begin(pp=SIZE)
    refused(ValueError, "are not enough", lambda: mp.PipelineLayer([paddle.tanh] * (SIZE - 1)))
    refused(ValueError, "the job's pp_degree", lambda: mp.PipelineLayer([paddle.tanh] * 9, num_stages=SIZE + 1))
    model = fleet.distributed_model(mp.PipelineLayer([paddle.tanh] * SIZE))
    data = paddle.ones([3, 1])
    refused(ValueError, "3 rows are not 2 micro-batches", lambda: model.train_batch((data, data), None))


def metrics():
    total = fleet.metrics.sum(np.array([1.0, RANK]))
    assert total.tolist() == [SIZE, sum(range(SIZE))]
    assert fleet.metrics.max(np.array(RANK)) == SIZE - 1
    assert fleet.metrics.min(paddle.to_tensor(RANK + 1)) == 1
    assert fleet.metrics.acc([2.0 + RANK], [10.0]) == (2 * SIZE + sum(range(SIZE))) / (10 * SIZE)
    scores, labels = np.random.default_rng(0).random(400), np.random.default_rng(1).random(400) < 0.4
    right, wrong = (np.histogram(scores[kind][RANK::SIZE], 4096, (0, 1))[0] for kind in (labels, ~labels))
    pairs = (scores[labels][:, None] > scores[~labels]).mean()
    np.testing.assert_allclose(fleet.metrics.auc(right, wrong), pairs, atol=1e-3)


def main():
    for static in (False, True):
        sharded("os", static)
        sharded("os_g", static, accumulated=static)
        in_parts(static, mp=SIZE)
        in_stages(static, pp=SIZE)
    sharded("os_g", False, clip=None, scaled=True)
    stage_of_the_strategy()
    if SIZE == 4:
        in_parts(True, mp=2, dp=2)
        in_parts(False, mp=2, sharding=2)
        in_stages(False, pp=2, dp=2)
    metrics()
    if SIZE > 1:
        wrong_use()


main()
