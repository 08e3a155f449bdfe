"""CAS servers that mount wrong things, or right ones in the wrong place."""

from aiohttp import web

from conformance.faults.cas.front import reply
from conformance.faults.cas.memory import Body
from conformance.faults.cas.server import CasServer
from conformance.faults.fault import fault

NORMAL, UNDER, LONG = (
    "mounts.paths_are_normalised",
    "mounts.a_path_stays_under_data",
    "mounts.a_path_has_at_most_512_characters",
)
ALIAS, THERE, REPOSITORY = (
    "mounts.mount_path_is_an_alias",
    "mounts.a_file_must_be_there",
    "mounts.a_repository_is_mounted",
)


@fault("CAS-SESS-07", cases="mounts.a_file_is_mounted_under_its_id")
class OtherPlace(CasServer):
    """A file without a path is put elsewhere."""

    def usual_path(self, name: str) -> str:
        return f"/data/files/{name}"


@fault("CAS-SESS-07", cases=f"{NORMAL} {UNDER}")
class PathsAsGiven(CasServer):
    """Paths are not normalised."""

    def normalised(self, path: str) -> str:
        return path


@fault("CAS-SESS-07", cases=UNDER)
class SiblingsOfData(CasServer):
    """/database is taken for a path under /data."""

    def check_inside(self, path: str) -> None:
        super().check_inside(path.replace("/database/", "/data/"))


@fault("CAS-SESS-07", cases=LONG)
class LongPathsTaken(CasServer):
    """Paths may be of any length."""

    def check_length(self, path: str) -> None:
        return None


@fault("CAS-SESS-07", cases=LONG)
class ShortPathsOnly(CasServer):
    """Paths may have 511 characters."""

    def check_length(self, path: str) -> None:
        super().check_length(path + "x")


@fault("CAS-SESS-07", cases=ALIAS)
class AliasIgnored(CasServer):
    """mount_path is ignored."""

    def alias(self, given: Body) -> str | None:
        return None


@fault("CAS-SESS-07", cases=ALIAS)
class AliasMayDiffer(CasServer):
    """path wins over another mount_path."""

    def check_alias(self, path: str, alias: str) -> None:
        return None


@fault("CAS-SESS-07", cases=THERE)
class AnyFileMounted(CasServer):
    """A file that is not there is mounted."""

    def check_file(self, name: str) -> None:
        return None


@fault("CAS-SESS-08", cases=REPOSITORY)
class UrlOptional(CasServer):
    """A repository needs no url."""

    def repository(self, given: Body) -> Body:
        return super().repository({"url": "https://github.com/example/other"} | given)


@fault("CAS-SESS-08", cases=REPOSITORY)
class WordsForAUrl(CasServer):
    """The url of a repository may be any words."""

    def check_url(self, url: str) -> None:
        return None


@fault("CAS-SESS-08", cases="mounts.a_token_never_comes_back")
class TokenReturned(CasServer):
    """The token of a repository comes back."""

    def repository(self, given: Body) -> Body:
        return super().repository(given) | {"authorization_token": given.get("authorization_token")}


@fault("CAS-SESS-14", cases="mounts.resources_come_and_go")
class ResourcesForgotten(CasServer):
    """A resource that is added later is not kept."""

    async def post_resource(self, request: web.Request) -> web.StreamResponse:
        return reply(self.mounted(await self.read(request)), 201)


@fault("CAS-SESS-14", cases="mounts.resources_come_and_go")
class ResourcesStay(CasServer):
    """A resource that is removed stays."""

    async def delete_resource(self, request: web.Request) -> web.StreamResponse:
        return reply({"id": self.resource(request)["id"]})
