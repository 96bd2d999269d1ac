"""ONNX models become Layers: files checked, graphs run node by node with our functions, a rule for each operator."""
