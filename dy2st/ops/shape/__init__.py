"""Making tensors and moving elements: creation, random bits, joining, splitting, padding."""
