"""Native code on the CPU: a Program becomes one function of machine code, made with LLVM.

Where only a call tells how extents of inputs meet, there is code for each way (shape_specialization.py). The stages,
each with a text that `dy2st code MODEL --stage` prints (dump_stages.py):

    fused    which operations share a loop nest (fusion/)
    loops    the loop nests: extents, operands, what each sweep through a row does (loop_nests/)
    llvm     textual LLVM IR with explicit vectors (emitter/, ops/ and kernel_calls/, and the kernels that they call)
    asm      what the CPU runs (compile_link/)

A folder imports those in front of it in this list alone (tests/test_layering.py): llvm_ir, allocator, compile_link,
thread_pool and libm, gemm and vector_ops, fusion, loop_nests, conv and attention, python_abi and loop_parallel,
trampolines, emitter, ops, kernel_calls.
"""

STAGES = ("fused", "loops", "llvm", "asm")
