"""Convolution, pooling, attention and beam search."""
