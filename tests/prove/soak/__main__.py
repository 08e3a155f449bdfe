"""`make soak`, as a proof: a real server under mixed work for minutes must not keep growing."""

import sys

from bench.soak import main

if __name__ == "__main__":
    sys.exit(main())
