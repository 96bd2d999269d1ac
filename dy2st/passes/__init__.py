"""Passes: Program in, Program out."""


def optimise(program):
    return program
