"""Plans that once broke a promise. They are data: a seed means another world as soon as worlds change."""

from pathlib import Path

import msgspec

from tests.prove.simulation.plan import Plan

FILE = Path(__file__).with_name("kept_plans.json")


class KeptPlan(msgspec.Struct, frozen=True):
    """A plan with a negative seed, what went wrong in it, and the planted bug that brings that back."""

    why: str
    bug: str
    plan: Plan


def kept_plans() -> list[KeptPlan]:
    return msgspec.json.decode(FILE.read_bytes(), type=list[KeptPlan])
