"""Elementary functions as LLVM IR, for vectors of any width."""

from dy2st.runtime.backends.cpu.libm.functions import function, load_formulas, strict_function
