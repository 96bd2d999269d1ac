"""What the passes make of a Program, checked by the rules of the IR."""

from dy2st.errors import InvalidProgram
from dy2st.ir.program import Program
from dy2st.ir.verifier import verify
from dy2st.passes import optimise


def optimised(program: Program) -> Program:
    """Return what the passes make, valid; only where it is not, look after each pass, so that the error names one."""
    made = optimise(program)
    try:
        verify(made)
    except InvalidProgram:
        optimise(program, verify=True)
        raise
    return made
