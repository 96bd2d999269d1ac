"""A Program becomes an ONNX graph: values, nodes, control flow, and a rule for each op in `rules/`."""
