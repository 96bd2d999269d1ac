"""Ops that read or write at places which tensors say."""
