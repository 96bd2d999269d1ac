"""Collectives, fleet and spread layers of one process: values are those of the process itself."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import distributed as dist
from dy2st.distributed import fleet
from dy2st.distributed.fleet import meta_parallel
from dy2st.ir.context import current

X = np.array([[1.0, 2.0]], "float32")


@pytest.fixture(autouse=True)
def not_initialized(monkeypatch):
    monkeypatch.setattr(current().process, "parallel", None)


def test_what_all_give_is_what_one_gives():
    x, objects = paddle.to_tensor(X), []
    for task in (dist.all_reduce(x), dist.all_reduce(x, op=dist.ReduceOp.MAX), dist.reduce(x), dist.broadcast(x, 0)):
        assert task.wait()
    for gather in (dist.all_gather, lambda into, x: dist.gather(x, into), lambda into, x: dist.alltoall(into, [x])):
        listed = []
        gather(listed, x)
        assert [t.tolist() for t in listed] == [X.tolist()]
        assert listed[0] is not x
        (kept,) = listed
        gather(listed, x + 1)
        assert listed == [kept]
        assert kept.tolist() == (X + 1).tolist()
    dist.all_gather_object(objects, "a")
    dist.broadcast_object_list(objects, 0)
    dist.scatter_object_list(objects, ["b"])
    assert objects == ["b"]
    for give in (dist.scatter, dist.reduce_scatter):
        y = paddle.zeros([1, 2])
        give(y, [x])
        assert y.tolist() == X.tolist()
    z = paddle.zeros([1, 2])
    dist.alltoall_single(z, x)
    assert z.tolist() == X.tolist()
    dist.barrier()
    dist.wait(x)


def test_there_is_one_group():
    group = dist.new_group([0])
    assert group is dist.get_group()
    assert (group.rank, group.nranks, group.is_member(), group.get_group_rank(3)) == (0, 1, True, -1)
    dist.init_parallel_env()
    dist.destroy_process_group()
    assert not dist.is_initialized()
    with pytest.raises(ValueError, match=r"there is one process, 0, not \[0, 1\]"):
        dist.new_group([0, 1])
    with pytest.raises(ValueError, match="there is no group 2"):
        dist.get_group(2)
    with pytest.raises(ValueError, match="broadcast: src=1, and there is one process"):
        dist.broadcast(paddle.ones([1]), 1)
    with pytest.raises(ValueError, match="send: process 1 is not another one"):
        dist.send(paddle.ones([1]), 1)
    with pytest.raises(ValueError, match="irecv: process 1 is not another one"):
        dist.irecv(paddle.ones([1]), 1)


def test_fleet_is_one_worker():
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {"dp_degree": 1, "mp_degree": 1}
    assert strategy.amp is False
    strategy.amp = True
    strategy.amp_configs["init_loss_scaling"] = 1024
    assert (strategy.amp, strategy.amp_configs) == (True, {"init_loss_scaling": 1024})
    assert fleet.init(is_collective=True, strategy=strategy) is fleet.fleet
    assert (fleet.worker_index(), fleet.worker_num(), fleet.server_num(), fleet.local_rank()) == (0, 1, 0, 0)
    assert fleet.is_first_worker()
    assert fleet.is_worker()
    assert not fleet.is_server()
    model = paddle.nn.Linear(2, 1)
    optimizer = paddle.optimizer.SGD(parameters=model.parameters())
    assert fleet.distributed_model(model) is model
    assert fleet.distributed_optimizer(optimizer) is optimizer
    group = fleet.get_hybrid_communicate_group()
    assert (group.get_model_parallel_world_size(), group.get_stage_id()) == (1, 0)
    assert group.get_data_parallel_group() is dist.get_group()
    with pytest.raises(AttributeError, match="has no 'get_nothing'"):
        group.get_nothing()
    assert group.get_check_parallel_group() is group.get_pipe_parallel_group() is dist.get_group()
    assert (group.is_first_stage, group.is_last_stage, group.get_rank_from_stage(0)) == (True, True, 0)
    assert (group.get_sharding_parallel_group_src_rank(), group.get_global_rank()) == (0, 0)
    with pytest.raises(NotImplementedError, match="sequences are not spread over processes"):
        strategy.hybrid_configs = {"sep_degree": 2}
    with pytest.raises(ValueError, match=r"mp_degree 2 needs 2 processes, and the job has 1 process"):
        strategy.hybrid_configs = {"mp_degree": 2}
    with pytest.raises(ValueError, match="one of them may be -1"):
        strategy.hybrid_configs = {"mp_degree": -1, "dp_degree": -1}
    with pytest.raises(ValueError, match="dp_degree 2 needs 2 processes"):
        strategy.hybrid_configs = {"mp_degree": 1, "dp_degree": 2}
    with pytest.raises(ValueError, match="worker 1 of 2: this is 0 of 1"):
        fleet.UserDefinedRoleMaker(current_id=1, worker_num=2)
    assert fleet.PaddleCloudRoleMaker(is_collective=True)._worker_num() == 1


def test_spread_layers_are_the_plain_ones():
    x = paddle.to_tensor(X)
    column = meta_parallel.ColumnParallelLinear(2, 3, has_bias=True, gather_output=False)
    row = meta_parallel.RowParallelLinear(3, 2, input_is_parallel=True)
    middle = X @ column.weight.numpy() + column.bias.numpy()
    np.testing.assert_allclose(row(column(x)).numpy(), middle @ row.weight.numpy(), rtol=1e-6)
    assert meta_parallel.ColumnParallelLinear(2, 3).bias is None
    table = meta_parallel.VocabParallelEmbedding(4, 2)
    assert table(paddle.to_tensor([3])).tolist() == table.weight.numpy()[[3]].tolist()
    loss = meta_parallel.ParallelCrossEntropy()(x, paddle.to_tensor([1]))
    np.testing.assert_allclose(loss.numpy(), [[np.log(1 + np.exp(-1.0))]], rtol=1e-6)


def test_random_numbers_have_generators_by_name():
    tracker = meta_parallel.get_rng_state_tracker()
    meta_parallel.model_parallel_random_seed(5)
    with tracker.rng_state():
        first = paddle.rand([2]).tolist()
    beside = paddle.rand([2]).tolist()
    with tracker.rng_state("model_parallel_rng"):
        second = paddle.rand([2]).tolist()
    paddle.seed(6)
    assert paddle.rand([2]).tolist() + paddle.rand([2]).tolist() == first + second
    paddle.seed(5)
    assert paddle.rand([2]).tolist() == beside
    with pytest.raises(ValueError, match="there is no random state 'x'"), tracker.rng_state("x"):
        pass
    with pytest.raises(ValueError, match="there is a random state 'model_parallel_rng' already"):
        tracker.add("model_parallel_rng", 1)
    tracker.reset()
