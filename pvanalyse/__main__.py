"""``python -m pvanalyse`` is ``pvanalyse``."""

import sys

from pvanalyse.cli import main

if __name__ == "__main__":
    sys.exit(main())
