"""`python -m conformance.faults.kill`: damages a correct server in every way there is, and shows which cases notice."""

from conformance.faults.kill.command import main

if __name__ == "__main__":
    main()
