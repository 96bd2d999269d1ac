"""Loss layers: one for each loss function, with its options as attributes."""

from __future__ import annotations

from typing import Any

from dy2st.nn.functional import classification as C
from dy2st.nn.functional import distance as D
from dy2st.nn.functional import loss as F
from dy2st.nn.functional.ctc import ctc_loss
from dy2st.nn.functional.reduce_loss import check_reduction
from dy2st.nn.functional.rnnt import rnnt_loss
from dy2st.nn.layer import Layer
from dy2st.nn.layers.from_function import layer_of


def _loss(name: str, function: Any, **options: Any) -> type[Layer]:
    return layer_of(name, function, f"{function.__doc__.splitlines()[0]}", __name__, **options)


L1Loss = _loss("L1Loss", F.l1_loss, reduction="mean")
BCELoss = _loss("BCELoss", F.binary_cross_entropy, weight=None, reduction="mean")
BCEWithLogitsLoss = _loss(
    "BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, weight=None, reduction="mean", pos_weight=None
)
NLLLoss = _loss("NLLLoss", C.nll_loss, weight=None, ignore_index=-100, reduction="mean")
KLDivLoss = _loss("KLDivLoss", F.kl_div, reduction="mean", log_target=False)
SmoothL1Loss = _loss("SmoothL1Loss", F.smooth_l1_loss, reduction="mean", delta=1.0, is_huber=True)
SoftMarginLoss = _loss("SoftMarginLoss", F.soft_margin_loss, reduction="mean")
PoissonNLLLoss = _loss("PoissonNLLLoss", F.poisson_nll_loss, log_input=True, full=False, epsilon=1e-8, reduction="mean")
GaussianNLLLoss = _loss("GaussianNLLLoss", F.gaussian_nll_loss, full=False, epsilon=1e-6, reduction="mean")
CosineEmbeddingLoss = _loss("CosineEmbeddingLoss", D.cosine_embedding_loss, margin=0, reduction="mean")
HingeEmbeddingLoss = _loss("HingeEmbeddingLoss", D.hinge_embedding_loss, margin=1.0, reduction="mean")
MarginRankingLoss = _loss("MarginRankingLoss", D.margin_ranking_loss, margin=0.0, reduction="mean")
TripletMarginLoss = _loss(
    "TripletMarginLoss", D.triplet_margin_loss, margin=1.0, p=2.0, epsilon=1e-6, swap=False, reduction="mean"
)
TripletMarginWithDistanceLoss = _loss(
    "TripletMarginWithDistanceLoss", D.triplet_margin_with_distance_loss, distance_function=None, margin=1.0,
    swap=False, reduction="mean",
)  # fmt: skip
MultiLabelSoftMarginLoss = _loss(
    "MultiLabelSoftMarginLoss", D.multi_label_soft_margin_loss, weight=None, reduction="mean"
)
MultiMarginLoss = _loss("MultiMarginLoss", D.multi_margin_loss, p=1, margin=1.0, weight=None, reduction="mean")
MultiLabelMarginLoss = _loss("MultiLabelMarginLoss", D.multi_label_margin_loss, reduction="mean")
PairwiseDistance = _loss("PairwiseDistance", D.pairwise_distance, p=2.0, epsilon=1e-6, keepdim=False)
CosineSimilarity = _loss("CosineSimilarity", D.cosine_similarity, axis=1, eps=1e-8)

RNNTLoss = _loss("RNNTLoss", rnnt_loss, blank=0, fastemit_lambda=0.001, reduction="mean")


class MSELoss(Layer):
    """(input - label)^2: its mean, its sum, or element by element."""

    def __init__(self, reduction: str = "mean"):
        super().__init__(dtype=None)
        check_reduction(reduction, "MSELoss")
        self.reduction = reduction

    def forward(self, input: Any, label: Any) -> Any:
        return F.mse_loss(input, label, self.reduction)


class CrossEntropyLoss(Layer):
    """-log(probability of the label); see `functional.cross_entropy` for what the options mean."""

    def __init__(
        self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean", soft_label: bool = False,
        axis: int = -1, use_softmax: bool = True, label_smoothing: float = 0.0, name: str | None = None,
    ):  # fmt: skip
        super().__init__(dtype=None)
        check_reduction(reduction, "CrossEntropyLoss")
        self.weight, self.ignore_index, self.reduction, self.soft_label = weight, ignore_index, reduction, soft_label
        self.axis, self.use_softmax, self.label_smoothing = axis, use_softmax, label_smoothing

    def forward(self, input: Any, label: Any) -> Any:
        return C.cross_entropy(
            input, label, self.weight, self.ignore_index, self.reduction, self.soft_label, self.axis, self.use_softmax,
            self.label_smoothing,
        )  # fmt: skip


class CTCLoss(Layer):
    """-log(probability of labels) of sequences, over all alignments; see `functional.ctc_loss`."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False):
        super().__init__(dtype=None)
        check_reduction(reduction, "CTCLoss")
        self.blank, self.reduction, self.zero_infinity = blank, reduction, zero_infinity

    def forward(
        self, log_probs: Any, labels: Any, input_lengths: Any, label_lengths: Any, norm_by_times: bool = False
    ) -> Any:
        options = (self.blank, self.reduction, norm_by_times, self.zero_infinity)
        return ctc_loss(log_probs, labels, input_lengths, label_lengths, *options)
