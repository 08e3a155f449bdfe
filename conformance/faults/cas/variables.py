"""Environment variables and mounted resources of the CAS reference server: each rule is a step of its own."""

import posixpath
import re
from typing import Any

from conformance.faults.cas.state import Body, State, mint, now
from conformance.faults.refusal import Refusal

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RESERVED_NAMES = ("SERVER_ENDPOINT", "USER_ID", "WORK_DIR")
RESERVED_PREFIXES = ("CAW_", "QODER_")
MOST, LARGEST_VALUE, LARGEST_ALL, LONGEST_PATH = 64, 8 * 1024, 64 * 1024, 512
ROOT = "/data/"


def size(text: str) -> int:
    return len(text.encode())


class Variables:
    """Checks the environment variables of a session."""

    def variables(self, given: Any, environment: Body) -> dict[str, str]:
        """The variables of a request, checked."""
        found = self.parsed(given)
        if found:
            self.check_hosting(found, environment)
        self.check_count(found)
        for name, value in found.items():
            self.check_name(name)
            self.check_reserved(name)
            self.check_value(name, value)
        self.check_all(found)
        return found

    def parsed(self, given: Any) -> dict[str, str]:
        if given is None:
            return {}
        if isinstance(given, dict):
            return self.from_object(given)
        if not isinstance(given, str):
            raise Refusal(400, "environment_variables must be a string.")
        return dict(self.entry(entry) for entry in re.split(r"[;\n]", given) if entry)

    def from_object(self, given: Body) -> dict[str, str]:
        return {str(name): str(value) for name, value in given.items()}

    def entry(self, entry: str) -> tuple[str, str]:
        name, equals, value = entry.partition("=")
        if not equals:
            raise Refusal(400, f"{name} has no value.")
        return name, value

    def check_hosting(self, found: dict[str, str], environment: Body) -> None:
        if environment["config"].get("type") == "self_hosted":
            raise Refusal(400, f"{next(iter(found))}: self-hosted environments take no variables.")

    def check_count(self, found: dict[str, str]) -> None:
        if len(found) > MOST:
            raise Refusal(400, f"{list(found)[MOST]} is one variable too many: the limit is {MOST}.")

    def check_name(self, name: str) -> None:
        if not NAME.fullmatch(name):
            raise Refusal(400, f"{name!r} is not a variable name.")

    def check_reserved(self, name: str) -> None:
        if name in RESERVED_NAMES or name.startswith(RESERVED_PREFIXES):
            raise Refusal(400, f"{name} is reserved.")

    def check_value(self, name: str, value: str) -> None:
        if size(value) > LARGEST_VALUE:
            raise Refusal(400, f"{name} is larger than {LARGEST_VALUE} bytes.")

    def check_all(self, found: dict[str, str]) -> None:
        total = 0
        for name, value in found.items():
            total += self.weight(name, value)
            if total > LARGEST_ALL:
                raise Refusal(400, f"With {name} the variables are larger than {LARGEST_ALL} bytes.")

    def weight(self, name: str, value: str) -> int:
        return size(name) + size(value)


class Mounts:
    """Checks what may be mounted into a session, and where."""

    def __init__(self, state: State) -> None:
        self.state = state

    def mounted(self, given: Any) -> Body:
        """A resource of a request as the session keeps it."""
        if not isinstance(given, dict):
            raise Refusal(400, "A resource must be an object.")
        match given.get("type", "file"):
            case "file":
                members = self.file_resource(given)
            case "github_repository":
                members = self.repository(given)
            case kind:
                raise Refusal(400, f"There is no resource of type {kind!r}.")
        return {"id": mint("sesr"), **members, "created_at": now(), "updated_at": now()}

    def file_resource(self, given: Body) -> Body:
        name = given.get("file_id")
        if not isinstance(name, str):
            raise Refusal(400, "file_id is required.")
        self.check_file(name)
        return {"type": "file", "file_id": name, "path": self.path(given, name)}

    def check_file(self, name: str) -> None:
        if name not in self.state.things["files"]:
            raise Refusal(400, f"The file {name!r} is not ready.")

    def path(self, given: Body, name: str) -> str:
        """Where the file goes."""
        wanted, alias = given.get("path"), self.alias(given)
        if wanted is not None and alias is not None:
            self.check_alias(wanted, alias)
        chosen = wanted or alias or self.usual_path(name)
        path = self.normalised(chosen if chosen.startswith("/") else ROOT + chosen)
        self.check_inside(path)
        self.check_length(path)
        return path

    def alias(self, given: Body) -> str | None:
        return given.get("mount_path")

    def usual_path(self, name: str) -> str:
        return ROOT + name

    def normalised(self, path: str) -> str:
        return posixpath.normpath(path)

    def check_alias(self, path: str, alias: str) -> None:
        if path != alias:
            raise Refusal(400, "path and mount_path differ.")

    def check_inside(self, path: str) -> None:
        if not path.startswith(ROOT):
            raise Refusal(400, f"{path} is not under {ROOT}.")

    def check_length(self, path: str) -> None:
        if len(path) > LONGEST_PATH:
            raise Refusal(400, f"The path is longer than {LONGEST_PATH} characters.")

    def repository(self, given: Body) -> Body:
        if not given.get("url"):
            raise Refusal(400, "url is required.")
        self.check_url(given["url"])
        return {name: given[name] for name in ("type", "url", "mount_path") if name in given}

    def check_url(self, url: str) -> None:
        if "://" not in url:
            raise Refusal(400, f"{url} is no url.")
