"""Convolutions without a copy of windows: direct, interleaved batches, Winograd."""
