"""Ops along an axis: reductions, scans, sorting, softmax, norms and losses."""
