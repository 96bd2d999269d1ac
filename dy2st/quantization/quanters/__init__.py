"""Quanters: what passes is rounded to integers and back while a model trains, and gradients go straight through."""

from dy2st.quantization.quanters.absmax import FakeQuanterWithAbsMaxObserver, FakeQuanterWithAbsMaxObserverLayer

__all__ = ["FakeQuanterWithAbsMaxObserver", "FakeQuanterWithAbsMaxObserverLayer"]
