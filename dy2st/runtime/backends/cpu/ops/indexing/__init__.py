"""Native code of reads and writes at places, of joining and creation."""
