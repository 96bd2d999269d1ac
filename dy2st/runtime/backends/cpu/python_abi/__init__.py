"""Between Python and native code: arguments read, results made, operations that Python runs, what ends a run."""
