"""What one trace of a function reads from outside and leaves behind: inputs, state, effects, outputs."""
