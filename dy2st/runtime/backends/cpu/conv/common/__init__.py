"""What all algorithms of convolution share: extents, columns, epilogues."""
