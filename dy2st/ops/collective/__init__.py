"""Ops that several processes do together, by MPI: each gives a tensor, each gets one."""
