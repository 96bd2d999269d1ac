"""Metrics against counts made by hand and by scikit-learn's definitions written out."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.metric import Accuracy, Auc, Metric, Precision, Recall, accuracy
from dy2st.metric.binary import _Counts

SCORES = np.array([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3], [0.1, 0.2, 0.7], [0.3, 0.4, 0.3]], np.float32)


@pytest.mark.parametrize("labels", [[1, 2, 0, 1], [[1], [2], [0], [1]], np.eye(3, dtype=np.float32)[[1, 2, 0, 1]]])
def test_accuracy_takes_class_numbers_and_one_hot_labels(labels):
    metric = Accuracy(topk=(1, 2))
    assert metric.update(metric.compute(paddle.to_tensor(SCORES), paddle.to_tensor(labels))) == [0.5, 0.75]
    assert metric.name() == ["acc_top1", "acc_top2"]


@pytest.mark.proves("metric.Accuracy")
def test_accuracy_sums_over_batches_of_different_sizes():
    metric = Accuracy()
    metric.update(metric.compute(SCORES, np.array([1, 0, 2, 1])))
    metric.update(metric.compute(SCORES[:1], np.array([0])))
    assert metric.accumulate() == 0.8
    metric.reset()
    assert metric.accumulate() == 0.0


def test_accuracy_of_no_samples_is_zero():
    metric = Accuracy()
    assert metric.update(np.zeros((0, 1))) == 0.0


@pytest.mark.proves("metric.accuracy")
def test_accuracy_function_in_a_program():
    static = paddle.jit.to_static(lambda x, y: accuracy(x, y, k=2), full_graph=True)
    labels = paddle.to_tensor([[1], [2], [0], [1]])
    assert float(static(paddle.to_tensor(SCORES), labels)) == float(accuracy(SCORES, labels, k=2)) == 0.75


@pytest.mark.proves("metric.Precision metric.Recall")
def test_precision_and_recall_count_at_one_half():
    guesses, labels = np.array([0.9, 0.5, 0.4, 0.1, 0.8]), np.array([1, 0, 1, 0, 1])
    precision, recall = Precision(), Recall()
    for metric in (precision, recall):
        assert metric.accumulate() == 0.0
        metric.update(guesses, labels)
    assert (precision.tp, precision.fp, precision.accumulate()) == (2, 1, 2 / 3)
    assert (recall.tp, recall.fn, recall.accumulate()) == (2, 1, 2 / 3)
    assert precision.name() == "precision"


@pytest.mark.proves("metric.Auc")
def test_auc_is_the_share_of_pairs_in_order(rng):
    positive, negative = rng.uniform(0.3, 1.0, 40), rng.uniform(0.0, 0.7, 60)
    metric = Auc()
    assert metric.accumulate() == 0.0
    for values, label in ((positive, 1), (negative, 0)):
        metric.update(np.stack([1 - values, values], 1), np.full((len(values), 1), label))
    want = (positive[:, None] > negative[None]).mean()
    assert abs(metric.accumulate() - want) < 1e-3


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda: Accuracy(topk=(0,)), "topk must be positive ints"),
        (lambda: Accuracy(topk=4).compute(SCORES, np.array([1, 2, 0, 1])), "the top 4 of 3 classes"),
        (lambda: Accuracy().compute(SCORES, np.zeros((4, 1, 1))), "do not fit scores"),
        (lambda: Accuracy(topk=2).update(np.zeros((3, 1))), "needs what compute returned"),
        (lambda: accuracy(SCORES[0], np.array([1])), "scores of 2 axes"),
        (lambda: Precision().update(np.zeros(3), np.zeros(2)), "3 predictions were given with 2 labels"),
        (lambda: Auc(curve="PR"), "curve must be 'ROC'"),
        (lambda: Auc(num_thresholds=0), "num_thresholds must be a positive int"),
        (lambda: Auc().update(np.zeros(3), np.zeros(2)), "3 predictions were given with 2 labels"),
        (lambda: Auc().update(np.array([1.5]), np.array([1])), "must be probabilities"),
    ],
)
def test_bad_arguments(act, text):
    with pytest.raises(ValueError, match=text):
        act()


def test_predictions_of_another_type():
    with pytest.raises(TypeError, match="preds must be a Tensor or an array, not str"):
        Recall().update("high", [1])


@pytest.mark.parametrize("method", ["reset", "update", "accumulate", "name"])
def test_a_metric_that_lacks_a_method_says_so(method):
    with pytest.raises(NotImplementedError, match=f"define `{method}`"):
        getattr(Metric(), method)()


def test_a_count_that_does_not_say_its_mistakes():
    class Count(_Counts):
        pass

    with pytest.raises(NotImplementedError, match="Count does not say which mistakes it counts"):
        Count().update(np.array([0.9]), np.array([1]))


@pytest.mark.proves("metric.Metric")
def test_compute_gives_its_arguments_back():
    assert Metric().compute(1, 2) == (1, 2)
