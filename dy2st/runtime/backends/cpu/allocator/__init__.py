"""Memory of native code: blocks that count who holds them, large ones, a reserve, blocks before forbidden pages."""
