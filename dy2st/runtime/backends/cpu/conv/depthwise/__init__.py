"""Convolutions of one channel a group: forward and both gradients."""
