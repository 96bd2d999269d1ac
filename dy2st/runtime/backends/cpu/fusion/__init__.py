"""The stage `fused`: which operations of a Program share a loop nest, and what becomes of the steps around it."""
