"""The stage `loops`: loop nests, laid out in sweeps through rows, written in vectors, split between threads."""
