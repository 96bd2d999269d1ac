"""Threads of native code: one pool a process, made of pthreads that run native code and never take Python's lock.

    cpu_count.py    how many threads there are to be
    pool.py      the pool as Python sees it: started at first need, made anew after a fork, ended with the process
    module.py    the pool as native code, of these parts:
    memory_layout.py       its memory
    worker_setup.py        how workers are made and where they are kept
    worker.py      what they run
    job_scheduling.py        how work is handed out
    gil.py   when Python's lock is given away
    parallel_region.py      writes the place where a kernel is split between threads

A Program runs on the thread that called it. A kernel that takes long enough is split over its outer range; every part
writes its own results, and nothing is added up across parts but in an order of its own, so that results are the same
bits for any number of threads.
"""
