"""The functions of the math library, a family a file."""
