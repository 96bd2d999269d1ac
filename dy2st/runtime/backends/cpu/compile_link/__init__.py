"""LLVM IR to machine code: the CPU that it is made for, LLVM, objects put together to images, images in memory."""
