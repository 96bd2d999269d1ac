"""What is made once and cached on disk, by what it was made from: machine code (`artifacts.py`), Programs, bytecode."""

from __future__ import annotations

import time

STARTED = time.time()
"""When this package was imported: source that was written later is not what runs here (environment_key.py)."""
