"""The functions of a Program: its blocks step by step, their values and who holds them, what steps share."""
