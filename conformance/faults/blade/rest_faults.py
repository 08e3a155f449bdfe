"""Servers whose REST answers about sessions are wrong."""

from aiohttp import web

from conformance.faults.blade.bending import bending, changing, instead, setting, without
from conformance.faults.blade.front import USER
from conformance.faults.blade.ledger import Session, new_session
from conformance.faults.blade.server import BladeServer
from conformance.faults.damage import without_nulls
from conformance.faults.fault import fault

ERRORS = "rest.unknown_things_are_404 rest.wrong_bodies_are_refused_in_words rest.a_wrong_token_is_401"
LEAVING = "rest_session.no_path_leaves_the_workspace rest_session.nothing_is_written_outside_the_workspace"


@fault("BL-REST-01", cases="rest.a_session_is_created")
class CreatedById(BladeServer):
    """POST /api/sessions answers {id}."""

    bends = bending({"created": lambda body: {"id": body["session_id"]}})


@fault("BL-REST-02", cases="rest.messages_are_a_bare_array")
class MessagesInItems(BladeServer):
    """The messages are wrapped."""

    bends = bending({"messages.get": lambda turns: {"items": turns}})


@fault("BL-REST-02", cases="rest.messages_are_a_bare_array")
class MessagesWithoutReason(BladeServer):
    """The messages have no failure_reason."""

    bends = bending({"turn": without("failure_reason")})


@fault("BL-REST-03", cases=ERRORS)
class ErrorsByAnotherName(BladeServer):
    """Errors are {error}."""

    def refusal(self, status: int, words: str) -> web.Response:
        return web.json_response({"error": words}, status=status)


@fault("BL-REST-03", cases="rest.a_wrong_token_is_401")
class AnybodyMayRead(BladeServer):
    """REST asks for no token."""

    def check_key(self, request: web.Request) -> None:
        """Everybody is welcome."""


@fault("BL-REST-04", cases="rest.a_deleted_session_is_gone")
class DeletedWithoutWord(BladeServer):
    """DELETE answers {ok}."""

    bends = bending({"deleted": instead({"ok": True})})


@fault("BL-REST-04", cases="rest.a_deleted_session_is_gone")
class DeletedStillThere(BladeServer):
    """A deleted session is still there."""

    async def delete_session(self, request: web.Request) -> web.StreamResponse:
        self.find(request)
        return self.reply("deleted", {"deleted": True})


@fault("BL-REST-05", cases="rest.sessions_are_listed_in_pages")
class ListWithoutTotal(BladeServer):
    """The list of sessions has no total."""

    bends = bending({"sessions": without("total")})


@fault("BL-REST-05", cases="rest.sessions_are_listed_in_pages")
class OffsetIgnored(BladeServer):
    """Every page is the first."""

    def page(self, request: web.Request, longest: int) -> tuple[int, int]:
        return super().page(request, longest)[0], 0


@fault("BL-REST-06", cases="rest_session.a_session_is_shown_in_full")
class SessionOfNobody(BladeServer):
    """A session does not say who is looking."""

    bends = bending({"session.get": without("viewer_role")})


@fault("BL-REST-07", cases="rest_session.intent_env_and_pin_are_changed")
class PinForgotten(BladeServer):
    """A pin does not hold."""

    bends = bending({"session": setting(is_pinned=False)})


@fault("BL-REST-07", cases="rest_session.intent_env_and_pin_are_changed")
class EnvWithoutSession(BladeServer):
    """PUT env answers {ok}."""

    bends = bending({"session.env": instead({"ok": True})})


@fault("BL-REST-08", cases="rest_session.sharing_and_memory_are_switched")
class SharingNotShown(BladeServer):
    """A session never shows that it is shared."""

    bends = bending({"session": setting(shared=False)})


@fault("BL-REST-08", cases="rest_session.sharing_and_memory_are_switched")
class MemorySwitchUnanswered(BladeServer):
    """PATCH memory answers nothing."""

    bends = bending({"memory_switch": instead({})})


@fault("BL-REST-09", cases="rest_session.a_history_counts_tokens")
class HistoryWithoutTokens(BladeServer):
    """The history does not count."""

    bends = bending({"history": without("tools_tokens")})


@fault("BL-REST-10", cases="rest_session.a_session_goes_back_to_a_checkpoint")
class RewindForgotten(BladeServer):
    """Rewind changes nothing."""

    def rewind(self, session: Session, place: int) -> None:
        """Nothing goes back."""


@fault("BL-REST-10", cases="rest_session.a_session_goes_back_to_a_checkpoint")
class CheckoutRewinds(BladeServer):
    """Checkout shortens the history."""

    async def post_checkout(self, request: web.Request) -> web.StreamResponse:
        self.rewind(self.find(request), 0)
        return await super().post_checkout(request)


@fault("BL-REST-11", cases="rest_session.a_session_is_replayed")
class AnySpeed(BladeServer):
    """A replay takes any speed."""

    async def post_replay(self, request: web.Request) -> web.StreamResponse:
        copy = new_session(self.find(request).fields, USER)
        self.sessions[copy.id] = copy
        return self.reply("replay.created", {"session_id": copy.id}, 201)


@fault("BL-REST-11", cases="rest_session.a_session_is_replayed")
class ReplayOfNothing(BladeServer):
    """The preview does not say whether a replay is supported."""

    bends = bending({"preview": without("supported")})


@fault("BL-REST-12", cases="rest_session.a_shared_session_is_read_by_anybody")
class SharedForGood(BladeServer):
    """A revoked share can still be read."""

    async def delete_share(self, request: web.Request) -> web.StreamResponse:
        return self.reply("revoked", {"revoked": True})


@fault("BL-REST-12", cases="rest_session.a_shared_session_is_read_by_anybody")
class SharesNeedKeys(BladeServer):
    """A share cannot be read without a key."""

    def check_key(self, request: web.Request) -> None:
        super().check_key(request)
        if request.path.startswith("/api/share/") and "Authorization" not in request.headers:
            raise web.HTTPUnauthorized


@fault("BL-REST-13", cases="rest_session.a_session_is_exported")
class ExportAsJson(BladeServer):
    """The export is JSON."""

    async def get_export(self, request: web.Request) -> web.StreamResponse:
        return self.reply("export", self.find(request).fields)


@fault("BL-REST-14", cases="rest_session.files_are_kept_in_the_workspace")
class FilesByOtherNames(BladeServer):
    """Files are listed in capitals."""

    bends = bending({"listing": lambda items: [{**item, "name": item["name"].upper()} for item in items]})


@fault("BL-REST-14", cases=LEAVING)
class PathsMayLeave(BladeServer):
    """Paths may climb out of the folder."""

    def path(self, request: web.Request) -> str:
        return str(request.match_info["path"])

    def file(self, session: Session, path: str) -> bytes:
        return session.files.get(path, b"root:x:0:0")


@fault("BL-REST-15", cases="rest_session.extra_info_is_kept")
class ExtraInfoTwice(BladeServer):
    """Extra info is not replaced."""

    async def post_extra(self, request: web.Request) -> web.StreamResponse:
        session = self.find(request)
        before = session.extra
        reply = await super().post_extra(request)
        session.extra = before or session.extra
        return reply


@fault("BL-REST-19", cases="rest.models_are_listed")
class DefaultUnknown(BladeServer):
    """The default model is none of the models."""

    bends = bending({"models": setting(default="another")})


@fault("BL-REST-20", cases="rest.the_user_is_named")
class AnotherUser(BladeServer):
    """The user is not the one the sessions belong to."""

    bends = bending({"me": setting(id="user_other")})


@fault("BL-REST-21", cases="rest.version_and_health_need_no_key")
class HealthNeedsKey(BladeServer):
    """Nothing is told without a key."""

    def check_key(self, request: web.Request) -> None:
        if self.key is not None and "Authorization" not in request.headers and request.path != "/socket.io/":
            raise web.HTTPUnauthorized


@fault("BL-REST-21", cases="rest.version_and_health_need_no_key")
class VersionAsNumber(BladeServer):
    """The version is a number."""

    bends = bending({"version": changing("version", lambda version: 1)})


@fault("BL-REST-15", cases="rest_session.extra_info_carries_any_json")
class NullsOfExtraInfoLost(BladeServer):
    """What is null in the extra info is left out."""

    bends = bending({"extra": without_nulls, "extra.get": without_nulls})
