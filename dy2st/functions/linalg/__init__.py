"""Linear algebra: products, decompositions, einsum, functions of matrices. Elementwise math is in math/."""
