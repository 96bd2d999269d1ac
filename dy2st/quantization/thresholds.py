"""The largest magnitude that is worth representing, from a histogram of magnitudes.

`percentile`: so much of all magnitudes is below it. `kl`: the distribution of rounded numbers is nearest to that of the
numbers, by its divergence; S. Migacz, "8-bit Inference with TensorRT" (2017).
"""

from __future__ import annotations

import numpy as np

BINS = 2048
PERCENT = 0.9999
"""How much of all magnitudes is represented as it is."""
_STEPS = 16
"""How many bins `kl` goes on at a time."""


class Histogram:
    """Counts of magnitudes in equal bins up to a largest one, which grows where larger ones come."""

    def __init__(self) -> None:
        self.counts = np.zeros(BINS)
        self.largest = 0.0

    def add(self, x: np.ndarray) -> None:
        """Count the finite magnitudes of an array."""
        sizes = np.abs(np.asarray(x, np.float64)).ravel()
        sizes = sizes[np.isfinite(sizes)]
        top = float(sizes.max(initial=0.0))
        if top > self.largest:
            self._widen(top)
        if self.largest > 0:
            self.counts += np.histogram(sizes, BINS, (0.0, self.largest))[0]

    def _widen(self, top: float) -> None:
        """Move the counts into wider bins."""
        old, self.largest = self.largest, top
        if old > 0:
            centers = (np.arange(BINS) + 0.5) * old / BINS
            self.counts = np.histogram(centers, BINS, (0.0, top), weights=self.counts)[0]

    def percentile(self, percent: float = PERCENT) -> float:
        """Return the magnitude that so much of all is not above."""
        total = self.counts.sum()
        if total == 0:
            return self.largest
        place = int(np.searchsorted(np.cumsum(self.counts), percent * total))
        return min(place + 1, BINS) * self.largest / BINS

    def kl(self, bits: int = 8) -> float:
        """Return the magnitude at which rounding to so many bits costs the least information."""
        levels, total = 2 ** (bits - 1), self.counts.sum()
        if total == 0 or levels >= BINS:
            return self.largest
        # of many zeros (behind a ReLU, at the border of images) only the bin that holds them would be told
        counts = self.counts.copy()
        counts[0] = counts[1]
        least, best = np.inf, BINS
        for bins in range(levels, BINS + 1, _STEPS):
            found = _divergence(counts, bins, levels)
            if found < least:
                least, best = found, bins
        return best * self.largest / BINS


def _divergence(counts: np.ndarray, bins: int, levels: int) -> float:
    """Return the divergence of what `levels` steps up to a bin keep of a histogram from the histogram."""
    kept = counts[:bins]
    p = kept.copy()
    p[-1] += counts[bins:].sum()
    level = np.arange(bins) * levels // bins
    there = kept > 0
    sums = np.bincount(level, weights=kept, minlength=levels)
    filled = np.bincount(level, weights=there, minlength=levels)
    q = np.where(there, (sums / np.maximum(filled, 1))[level], 0.0)
    if p.sum() == 0 or q.sum() == 0:
        return np.inf
    p, q = p / p.sum(), q / q.sum()
    both = p > 0
    if np.any(both & (q == 0)):  # a bin that rounding empties: as if it had a little
        q = np.where(both & (q == 0), 1e-9, q)
    return float(np.sum(p[both] * np.log(p[both] / q[both])))
