"""An independent checker of Programs from files: what it has not typed reaches neither native code nor interpreter."""
