"""Elementwise math, reductions, search, histograms and random numbers. What changes only a shape is in shape/."""
