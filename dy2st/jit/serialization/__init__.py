"""Programs to files and back: export, schemas of arguments and outputs, layers that are loaded."""
