"""Measures of how good predictions are, summed over batches."""

from dy2st.metric.base import Metric
from dy2st.metric.binary import Auc, Precision, Recall
from dy2st.metric.top_k import Accuracy, accuracy
from dy2st.missing import missing_in

__getattr__ = missing_in(__name__)

__all__ = ["Accuracy", "Auc", "Metric", "Precision", "Recall", "accuracy"]
