"""Convolutions as products of matrices: batched im2col and shifted windows."""
