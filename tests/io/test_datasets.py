"""Datasets made of others, samplers, readers."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import io


class Numbers(io.Dataset):
    def __init__(self, *numbers):
        self.numbers = numbers

    def __getitem__(self, i):
        return self.numbers[i]

    def __len__(self):
        return len(self.numbers)


class Stream(io.IterableDataset):
    def __init__(self, *numbers):
        self.numbers = numbers

    def __iter__(self):
        return iter(self.numbers)


@pytest.mark.proves(
    "io.Dataset io.IterableDataset io.TensorDataset io.ComposeDataset io.ChainDataset io.ConcatDataset io.Subset"
)
def test_datasets_are_made_of_others():
    a, b = Numbers(1, 2, 3), Numbers(4, 5, 6)
    joined = io.ConcatDataset([a, b])
    assert [joined[i] for i in range(6)] == [1, 2, 3, 4, 5, 6]
    assert joined[-1] == 6
    assert io.ComposeDataset([a, b])[1] == (2, 5)
    assert len(io.ComposeDataset([a, Numbers((1, 2), (3, 4), (5, 6))])) == 3
    assert list(io.ChainDataset([Stream(1, 2), Stream(3)])) == [1, 2, 3]
    assert io.Subset(a, [2, 0])[0] == 3
    rows = io.TensorDataset([paddle.eye(2), paddle.to_tensor([7, 8])])
    assert [t.tolist() for t in rows[1]] == [[0.0, 1.0], 8]
    assert len(rows) == 2


@pytest.mark.proves("io.random_split")
def test_random_split_deals_out_every_sample():
    parts = io.random_split(Numbers(*range(10)), [7, 3])
    assert [len(p) for p in parts] == [7, 3]
    assert sorted(i for p in parts for i in p.indices) == list(range(10))
    assert [len(p) for p in io.random_split(Numbers(*range(10)), [0.5, 0.25, 0.25])] == [6, 2, 2]
    assert io.random_split(Numbers(5, 6), [1, 1], generator=[1, 0])[0][0] == 6


@pytest.mark.proves("io.Sampler io.SequenceSampler io.RandomSampler io.WeightedRandomSampler io.SubsetRandomSampler")
def test_samplers_give_numbers():
    source = Numbers(*range(6))
    assert list(io.SequenceSampler(source)) == list(range(6))
    assert sorted(io.RandomSampler(source)) == list(range(6))
    assert len(list(io.RandomSampler(source, replacement=True, num_samples=9))) == 9
    assert list(io.RandomSampler(source, generator=[3, 1], num_samples=2)) == [3, 1]
    assert sorted(io.SubsetRandomSampler([4, 2])) == [2, 4]
    assert set(io.WeightedRandomSampler([0, 1, 0, 3], 50)) == {1, 3}
    assert sorted(io.WeightedRandomSampler([0, 1, 0, 3], 2, replacement=False)) == [1, 3]
    assert len(io.Sampler(source)) == 6


@pytest.mark.proves("io.BatchSampler")
def test_batches_of_numbers():
    source = Numbers(*range(5))
    assert list(io.BatchSampler(source, batch_size=2)) == [[0, 1], [2, 3], [4]]
    assert len(io.BatchSampler(source, batch_size=2, drop_last=True)) == 2
    assert sorted(i for b in io.BatchSampler(source, shuffle=True, batch_size=2) for i in b) == list(range(5))


@pytest.mark.proves("io.DistributedBatchSampler")
def test_processes_take_turns():
    source = Numbers(*range(5))
    mine = [list(io.DistributedBatchSampler(source, 2, num_replicas=2, rank=r)) for r in (0, 1)]
    assert mine == [[[0, 2], [4]], [[1, 3], [0]]]
    mixed = io.DistributedBatchSampler(source, 5, num_replicas=1, rank=0, shuffle=True)
    first = list(mixed)
    mixed.set_epoch(1)
    assert list(mixed) != first
    assert sorted(next(iter(mixed))) == list(range(5))
    assert len(mixed) == 1


@pytest.mark.proves("batch")
def test_a_reader_is_batched():
    assert list(paddle.batch(lambda: range(5), 2, drop_last=True)()) == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: io.Dataset()[0], NotImplementedError, "Dataset has no samples: define __getitem__"),
        (lambda: len(io.Dataset()), NotImplementedError, "Dataset has no length: define __len__"),
        (lambda: iter(io.IterableDataset()), NotImplementedError, "define __iter__"),
        (lambda: Stream()[0], TypeError, "Stream is an IterableDataset: its samples have no numbers"),
        (lambda: len(Stream()), TypeError, "Stream is an IterableDataset: it has no length"),
        (lambda: iter(io.Sampler()), NotImplementedError, "Sampler has no order: define __iter__"),
        (
            lambda: io.TensorDataset([paddle.ones([1]), paddle.ones([2])]),
            ValueError,
            r"one first extent, not of \[1, 2\]",
        ),
        (lambda: io.ComposeDataset([Numbers(1), Numbers()]), ValueError, r"datasets of one length, not of \[0, 1\]"),
        (lambda: io.ConcatDataset([]), ValueError, "ConcatDataset needs at least one dataset"),
        (lambda: io.ConcatDataset([Numbers(1)])[1], IndexError, "sample 1 is out of range for a dataset of 1"),
        (lambda: io.random_split(Numbers(1), [2]), ValueError, r"the lengths \[2\] do not add up to 1"),
        (lambda: io.RandomSampler(Numbers(1), num_samples=0), ValueError, "num_samples must be positive"),
        (lambda: io.RandomSampler(Numbers(1), num_samples=2), ValueError, "2 of 1 samples, without replacement"),
        (lambda: io.SubsetRandomSampler([]), ValueError, "needs at least one sample"),
        (lambda: io.WeightedRandomSampler([1.0], 2, False), ValueError, "2 samples cannot be taken of 1"),
        (lambda: io.WeightedRandomSampler([-1.0, 2.0], 1), ValueError, "the weights must not be negative, nor all 0"),
        (lambda: io.BatchSampler(), ValueError, "needs one of dataset and sampler"),
        (lambda: io.BatchSampler(sampler=[0], shuffle=True), ValueError, "the sampler decides the order"),
        (lambda: io.BatchSampler(Numbers(1), batch_size=0), ValueError, "batch_size must be a positive int"),
        (lambda: io.DistributedBatchSampler(Numbers(1), 1, 2, 2), ValueError, "rank 2 is not one of 2 processes"),
        (lambda: paddle.batch(list, 0), ValueError, "batch_size must be positive, not 0"),
    ],
)
def test_what_cannot_be_done_is_said(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_numpys_seed_repeats_the_order():
    orders = []
    for _ in range(2):
        np.random.seed(1)
        orders.append(list(io.RandomSampler(Numbers(*range(30)))))
    assert orders[0] == orders[1]
