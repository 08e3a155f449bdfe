"""The former name of `conformance.faults.false_alarms`: the command still works."""

import typer

from conformance.faults.false_alarms import find_false_alarms

if __name__ == "__main__":
    typer.run(find_false_alarms)
