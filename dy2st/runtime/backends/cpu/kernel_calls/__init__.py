"""Loop nests run from the functions of a Program: extents checked, room made for results, kernels called."""
