"""Native code of convolution, pooling, attention, beam search and random draws."""
