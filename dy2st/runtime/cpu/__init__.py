"""Native code on the CPU: a Program becomes one function of machine code, made with LLVM.

The stages, each with a text that `dy2st code --stage` prints:

    fused    which operations share a loop nest (grouping.py)
    llvm     textual LLVM IR with explicit vectors (lowering.py and the rules beside it)
    asm      what the CPU runs (engine.py)
"""
