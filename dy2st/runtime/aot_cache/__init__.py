"""What is made once and kept on disk, by what it was made from."""
