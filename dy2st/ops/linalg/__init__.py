"""Products, decompositions, solvers and transforms of matrices."""
