"""The fuzzer of tests/prove/fuzz, short, and judged only by what does not depend on the speed of the machine."""

import sys

from tests.prove.fuzz.__main__ import main

if __name__ == "__main__":
    sys.argv[1:1] = ["--inputs", "6000", "--no-measures"]
    sys.exit(main())
