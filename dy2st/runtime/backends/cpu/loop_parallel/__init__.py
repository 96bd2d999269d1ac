"""Whole loops shared by threads: each runs all iterations on rows of its own, and nobody waits before the end.

    independent_axes.py       which axes of the values in a loop never meet: what stands at one place of such an axis
                  depends on what stands at that place elsewhere, and on nothing beside it
    axis_propagation.py       what each op does with the axes of its operands
    reductions.py       what a loop carries as a sum over rows
    chunk_contexts.py   memory for each part
    chunked_lists.py      lists of tensors in rows

`parallel_loops.py` writes such a loop, `parallel_loop_chunks.py` a part of it, `parallel_reductions.py` its sums. A
recurrent network is one: each sequence of a batch is by itself. How many parts there are, extents alone decide, so
results are the same bits for any number of threads.
"""
