"""CAS servers that take wrong variables, or refuse right ones."""

import re
from typing import Any

from conformance.faults.cas.memory import Body
from conformance.faults.cas.server import CasServer
from conformance.faults.fault import fault
from conformance.faults.ledger import Refusal

PARTED = "variables.variables_are_parted_by_semicolons_or_newlines"
NAMES, WRONG_NAME = "variables.names_and_empty_values", "variables.a_wrong_name_is_refused"
MANY, LARGE, ALL = (
    "variables.there_are_at_most_64_variables",
    "variables.a_value_has_at_most_8_kib",
    "variables.all_together_have_at_most_64_kib",
)
RESERVED, PREFIXED = "variables.some_names_are_reserved", "variables.some_prefixes_are_reserved"
OBJECT = "variables.an_object_is_taken_or_refused"


@fault("CAS-SESS-06", cases=PARTED)
class SemicolonsOnly(CasServer):
    """Newlines part nothing."""

    def parsed(self, given: Any) -> dict[str, str]:
        return super().parsed(given.replace("\n", " ") if isinstance(given, str) else given)


@fault("CAS-SESS-06", cases=PARTED)
class CutAtEquals(CasServer):
    """A value ends at its first equals sign."""

    def entry(self, entry: str) -> tuple[str, str]:
        name, value = super().entry(entry)
        return name, value.partition("=")[0]


@fault("CAS-SESS-06", cases=NAMES)
class NoEmptyValues(CasServer):
    """Empty values are refused."""

    def check_value(self, name: str, value: str) -> None:
        if not value:
            raise Refusal(400, f"{name} is empty.")
        super().check_value(name, value)


@fault("CAS-SESS-06", cases=NAMES)
class CapitalsOnly(CasServer):
    """Names must be in capitals."""

    def check_name(self, name: str) -> None:
        if not re.fullmatch("[A-Z_][A-Z0-9_]*", name):
            raise Refusal(400, f"{name!r} is not a variable name.")


@fault("CAS-SESS-06", cases=WRONG_NAME)
class AnyNameTaken(CasServer):
    """Any name will do."""

    def check_name(self, name: str) -> None:
        return None


@fault("CAS-SESS-06", cases=WRONG_NAME)
class BreachNotNamed(CasServer):
    """The variable with the wrong name is not named."""

    def check_name(self, name: str) -> None:
        try:
            super().check_name(name)
        except Refusal:
            raise Refusal(400, "A variable has a wrong name.") from None


@fault("CAS-SESS-06", cases="variables.an_entry_needs_an_equals_sign")
class LonelyNamesTaken(CasServer):
    """An entry without an equals sign has an empty value."""

    def entry(self, entry: str) -> tuple[str, str]:
        return super().entry(entry if "=" in entry else f"{entry}=")


@fault("CAS-SESS-06", cases=MANY)
class AnyNumberTaken(CasServer):
    """There may be any number of variables."""

    def check_count(self, found: dict[str, str]) -> None:
        return None


@fault("CAS-SESS-06", cases=MANY)
class SixtyThreeAtMost(CasServer):
    """There may be 63 variables."""

    def check_count(self, found: dict[str, str]) -> None:
        if len(found) > 63:
            raise Refusal(400, "Too many variables.")


@fault("CAS-SESS-06", cases=LARGE)
class AnySizeTaken(CasServer):
    """A value may be of any size."""

    def check_value(self, name: str, value: str) -> None:
        return None


@fault("CAS-SESS-06", cases=LARGE)
class CharactersCounted(CasServer):
    """The size of a value is counted in characters."""

    def check_value(self, name: str, value: str) -> None:
        if len(value) > 8192:
            raise Refusal(400, f"{name} is too large.")


@fault("CAS-SESS-06", cases=ALL)
class NamesNotCounted(CasServer):
    """Only values count towards the size of all."""

    def check_all(self, found: dict[str, str]) -> None:
        if sum(map(len, found.values())) > 65536:
            raise Refusal(400, "Too large.")


@fault("CAS-SESS-06", cases=RESERVED)
class NamesNotReserved(CasServer):
    """USER_ID may be set."""

    def check_reserved(self, name: str) -> None:
        if name != "USER_ID":
            super().check_reserved(name)


@fault("CAS-SESS-06", cases=RESERVED)
class ReservedAnywhere(CasServer):
    """Names that contain a reserved name are refused too."""

    def check_reserved(self, name: str) -> None:
        super().check_reserved(name)
        if "USER_ID" in name:
            raise Refusal(400, f"{name} is reserved.")


@fault("CAS-SESS-06", cases=PREFIXED)
class PrefixesNotReserved(CasServer):
    """QODER_ is not reserved."""

    def check_reserved(self, name: str) -> None:
        if not name.startswith("QODER_"):
            super().check_reserved(name)


@fault("CAS-SESS-06", cases="variables.self_hosted_environments_take_none")
class SelfHostedTakesVariables(CasServer):
    """Self-hosted environments take variables."""

    def check_hosting(self, found: dict[str, str], environment: Body) -> None:
        return None


@fault("CAS-SESS-06", cases=OBJECT)
class ObjectsForgotten(CasServer):
    """An object is taken, and lost."""

    def from_object(self, given: Body) -> dict[str, str]:
        return {}


@fault("CAS-SESS-06", cases=OBJECT)
class NumbersTaken(CasServer):
    """A number is taken for no variables."""

    def parsed(self, given: Any) -> dict[str, str]:
        return {} if isinstance(given, int) else super().parsed(given)
