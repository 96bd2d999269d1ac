"""What `paddle.*` and the methods of Tensor do, a file a family."""
