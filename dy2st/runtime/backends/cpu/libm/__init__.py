"""Elementary functions as LLVM IR, for vectors of any width."""

from dy2st.runtime.backends.cpu.libm.functions import FORMULAS, function, strict_function
