"""Eager mode: Tensor, dispatch of an op, in-place writes, devices, random numbers."""
