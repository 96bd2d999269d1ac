"""Observers: what they make of the numbers that pass is the scale of a tensor, or of the groups of a weight."""

from dy2st.quantization.observers.absmax import AbsmaxObserver, AbsmaxObserverLayer
from dy2st.quantization.observers.groupwise import GroupWiseWeightObserver, GroupWiseWeightObserverLayer
from dy2st.quantization.observers.histogram import (
    HistObserver,
    HistObserverLayer,
    KLObserver,
    KLObserverLayer,
)

__all__ = [
    "AbsmaxObserver",
    "AbsmaxObserverLayer",
    "GroupWiseWeightObserver",
    "GroupWiseWeightObserverLayer",
    "HistObserver",
    "HistObserverLayer",
    "KLObserver",
    "KLObserverLayer",
]
