"""``python -m regbayes``."""

import sys

from regbayes.cli import main

if __name__ == "__main__":
    sys.exit(main())
