"""`paddle.io`: datasets, samplers, and the DataLoader that makes batches of them."""

from dy2st.io.collate import default_collate_fn, default_convert_fn
from dy2st.io.dataset import (
    ChainDataset,
    ComposeDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    random_split,
)
from dy2st.io.loader import DataLoader
from dy2st.io.reader import batch
from dy2st.io.sampler import (
    BatchSampler,
    DistributedBatchSampler,
    RandomSampler,
    Sampler,
    SequenceSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from dy2st.io.workers import get_worker_info
from dy2st.missing import missing_in

__getattr__ = missing_in(__name__)
