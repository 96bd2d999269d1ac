"""What a backend is asked for, and the backends, a folder each."""
