"""Making, indexing, joining and rearranging tensors: where elements stand, not what they are."""
