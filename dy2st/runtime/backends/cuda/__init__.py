"""Programs on CUDA: the CPU's loop nests as kernels, everything else by CuPy (docs/decisions/0048-cuda.md).

| module | what it has |
|---|---|
| `target.py` | machines that kernels are made for: a GPU, or this CPU in place of one; their code |
| `grid.py` | threads and blocks, as a GPU has them and as loops |
| `nests.py` | a group of operations as a kernel, or as several |
| `fusion.py` | which operations become a group here |
| `launcher.py` | a group run on arrays: extents checked, room made for results, kernels chosen and launched |
| `program.py` | a Program as a plan of launches, host steps and CuPy's functions; what it did, counted |
| `emulation/` | the few things of CuPy that are used, on this machine, refusing what a device refuses |
"""
