"""All collectives on all dtypes, sizes and groups, against NumPy: each rank knows what the others have."""

import sys

import numpy as np

import dy2st as paddle
from dy2st import distributed as dist
from dy2st import dtypes

dist.init_parallel_env()
RANK, SIZE = dist.get_rank(), dist.get_world_size()
DTYPES = ("bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128").split()
SHAPES = ((), (0,), (2 * SIZE,), (SIZE, 3, 2)) if SIZE == 2 else ((), (SIZE, 3))


def elements(rank, shape, dtype):
    numbers = np.random.default_rng(rank).integers(0, 4, shape)
    found = numbers + 1j * rank if dtype.startswith("complex") else numbers % 2 if dtype == "bool" else numbers
    return np.asarray(found).astype(dtypes.dtype(dtype).numpy)


def tensor(rank, shape, dtype):
    return paddle.to_tensor(elements(rank, shape, dtype))


def same(found, wanted, what):
    found = found.numpy() if hasattr(found, "numpy") else found
    assert found.dtype == wanted.dtype, (what, found.dtype, wanted.dtype)
    np.testing.assert_array_equal(found, wanted, err_msg=str(what))


def check_reductions(shape, dtype, group, ranks):
    parts = np.stack([elements(r, shape, dtype) for r in ranks])
    ways = {"SUM": np.add, "PROD": np.multiply}
    if not dtype.startswith("complex"):
        ways |= {"MAX": np.maximum, "MIN": np.minimum}
    for name, function in ways.items():
        x = tensor(RANK, shape, dtype)
        dist.all_reduce(x, getattr(dist.ReduceOp, name), group)
        wide = parts.astype("float32") if dtype == "bfloat16" else parts
        same(x, function.reduce(wide, 0).astype(parts.dtype), (name, dtype, shape))
    x = tensor(RANK, shape, dtype)
    dist.reduce(x, ranks[-1], group=group)
    wide = parts.astype("float32") if dtype == "bfloat16" else parts
    total = wide.sum(0, dtype=wide.dtype).astype(parts.dtype)
    same(x, total if RANK == ranks[-1] else parts[ranks.index(RANK)], ("reduce", dtype))
    if dtype in ("float32", "float64"):
        x = tensor(RANK, shape, dtype)
        dist.all_reduce(x, dist.ReduceOp.AVG, group)
        same(x, total / np.asarray(len(ranks), dtype), ("AVG", dtype))


def check_movements(shape, dtype, group, ranks):
    parts, me = [elements(r, shape, dtype) for r in ranks], ranks.index(RANK)
    x = tensor(RANK, shape, dtype)
    dist.broadcast(x, ranks[-1], group)
    same(x, parts[-1], ("broadcast", dtype))
    listed = []
    dist.all_gather(listed, tensor(RANK, shape, dtype), group)
    for i, found in enumerate(listed):
        same(found, parts[i], ("all_gather", dtype))
    listed = []
    dist.gather(tensor(RANK, shape, dtype), listed, ranks[0], group)
    assert len(listed) == (len(ranks) if RANK == ranks[0] else 0)
    for i, found in enumerate(listed):
        same(found, parts[i], ("gather", dtype))
    y = tensor(RANK, shape, dtype)
    mine = [tensor(10 * RANK + i, shape, dtype) for i in range(len(ranks))]
    dist.scatter(y, mine if RANK == ranks[-1] else None, ranks[-1], group)
    same(y, elements(10 * ranks[-1] + me, shape, dtype), ("scatter", dtype))
    listed = []
    dist.alltoall(listed, mine, group)
    for i, found in enumerate(listed):
        same(found, elements(10 * ranks[i] + me, shape, dtype), ("alltoall", dtype))
    y = tensor(RANK, shape, dtype)
    dist.reduce_scatter(y, mine, group=group)
    given = np.stack([elements(10 * r + me, shape, dtype) for r in ranks])
    wide = given.astype("float32") if dtype == "bfloat16" else given
    same(y, wide.sum(0, dtype=wide.dtype).astype(given.dtype), ("reduce_scatter", dtype))


def check_blocks(dtype):
    x, y = tensor(RANK, (2 * SIZE, 3), dtype), paddle.zeros([2 * SIZE, 3], dtype)
    dist.alltoall_single(y, x)
    parts = [elements(r, (2 * SIZE, 3), dtype) for r in range(SIZE)]
    same(y, np.concatenate([p[2 * RANK : 2 * RANK + 2] for p in parts]), ("alltoall_single", dtype))
    goes = [(RANK + i) % 3 for i in range(SIZE)]
    comes = [(i + RANK) % 3 for i in range(SIZE)]
    x, y = tensor(RANK, (sum(goes), 2), dtype), paddle.zeros([sum(comes), 2], dtype)
    dist.alltoall_single(y, x, comes, goes)
    wanted = []
    for r in range(SIZE):
        sizes = [(r + i) % 3 for i in range(SIZE)]
        start = sum(sizes[:RANK])
        wanted.append(elements(r, (sum(sizes), 2), dtype)[start : start + sizes[RANK]])
    same(y, np.concatenate(wanted), ("alltoall_single of sizes", dtype))


def check_messages(dtype):
    after, before = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    large = (1 << 16,)
    y = tensor(RANK, large, dtype)
    tasks = [dist.isend(tensor(RANK, large, dtype), after), dist.irecv(y, before)]
    for task in tasks:
        task.wait()
        assert task.is_completed()
    same(y, elements(before, large, dtype), ("irecv", dtype))
    if RANK % 2:
        dist.recv(y, before)
        dist.send(tensor(RANK, large, dtype), after)
    else:
        dist.send(tensor(RANK, large, dtype), after)
        dist.recv(y, before)
    same(y, elements(before, large, dtype), ("recv", dtype))


def check_objects():
    listed = []
    dist.all_gather_object(listed, {"rank": RANK})
    assert listed == [{"rank": r} for r in range(SIZE)]
    listed = [RANK, "x"]
    dist.broadcast_object_list(listed, SIZE - 1)
    assert listed == [SIZE - 1, "x"]
    dist.scatter_object_list(listed, [f"for {r}" for r in range(SIZE)] if RANK == 0 else None, 0)
    assert listed == [f"for {RANK}"]


def main():
    groups = [None, dist.new_group([0, 1]), dist.new_group([SIZE - 1, 0])]
    if SIZE > 2:
        groups.append(dist.new_group(range(1, SIZE)))
    for group in groups:
        ranks = tuple(range(SIZE)) if group is None else group.ranks
        if RANK not in ranks:
            assert (group.rank, group.is_member()) == (-1, False)
            continue
        for dtype in DTYPES if group is None else ("float32", "bool"):
            for shape in SHAPES:
                check_reductions(shape, dtype, group, ranks)
                check_movements(shape, dtype, group, ranks)
    for dtype in DTYPES:
        check_blocks(dtype)
        check_messages(dtype)
    check_objects()
    dist.barrier()
    sys.stdout.write(f"rank {RANK} of {SIZE}: all right\n")


main()
