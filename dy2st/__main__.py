"""`python -m dy2st` is the command `dy2st`."""

import sys

from dy2st.cli import main

if __name__ == "__main__":
    sys.exit(main())
