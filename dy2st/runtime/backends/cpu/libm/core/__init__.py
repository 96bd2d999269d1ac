"""What formulas are written with: an emitter of vectors, bits of floats, double-double, coefficients."""
