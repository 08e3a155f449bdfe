"""Servers whose conversations, lists, files, models and wrappers are wrong."""

from typing import Any

from aiohttp import web

from conformance.faults.fault import fault
from conformance.faults.zenflux.memory import Body, Conversation, Refusal, Session
from conformance.faults.zenflux.server import ZenfluxServer

MADE = "conversations.a_conversation_is_made"
LISTED = "conversations.conversations_are_listed_in_pages"
SHOWN = "conversations.a_conversation_is_shown"
SEARCHED = "conversations.conversations_are_searched"
PREPARED = "conversations.a_conversation_is_prepared_and_summed_up"
CURSOR = "paging.messages_are_paged_by_cursor"
OFFSET = "paging.messages_are_paged_by_offset"
COUNTED = "paging.lists_of_conversations_are_counted"
TAKEN = "files.a_file_is_taken"
UNKNOWN = "chat.unknown_things_are_errors_in_the_wrapper"
WRAPPED = "chat.every_answer_is_wrapped"
STATUS = "sessions.the_status_says_what_the_code_says"


@fault("ZF-HTTP-3.2-01", "ZF-TYPE-05", cases=f"{MADE} types.a_conversation_has_its_members")
class Untitled(ZenfluxServer):
    """The title is not kept."""

    def add_conversation(self, talk: Conversation) -> Conversation:
        talk.title = "New conversation"
        return super().add_conversation(talk)


@fault("ZF-TYPE-05", "ZF-HTTP-3.2-01", cases=f"types.a_conversation_has_its_members {MADE}")
class WithoutUser(ZenfluxServer):
    """A conversation does not show its user."""

    def shown(self, talk: Conversation) -> Body:
        return {name: value for name, value in super().shown(talk).items() if name != "user_id"}


@fault("ZF-HTTP-3.2-02", cases=LISTED)
class EverybodysConversations(ZenfluxServer):
    """Everybody sees all conversations."""

    def owned(self, user: str) -> list[Conversation]:
        return list(self.conversations.values())


@fault("ZF-HTTP-3.2-02", cases=LISTED)
class OffsetIgnored(ZenfluxServer):
    """Every page is the first."""

    def offset(self, request: web.Request) -> int:
        return 0


@fault("ZF-HTTP-3.2-03", "ZF-GEN-04", "G-ZF-23", cases=f"{SHOWN} {UNKNOWN} {STATUS}")
class ShowsTheUnknown(ZenfluxServer):
    """An unknown conversation is a new one."""

    async def get_conversation(self, request: web.Request) -> web.StreamResponse:
        try:
            return await super().get_conversation(request)
        except Refusal:
            return self.reply(self.shown(Conversation("nobody", "New", id=request.match_info["id"])))


@fault("ZF-HTTP-3.2-04", cases="conversations.a_conversation_is_renamed")
class RenameIgnored(ZenfluxServer):
    """A new title is not kept."""

    async def put_conversation(self, request: web.Request) -> web.StreamResponse:
        return self.reply(self.shown(self.named(request)) | {"title": self.needed(request, "title")})


@fault("ZF-HTTP-3.2-05", cases="conversations.a_conversation_is_deleted")
class DeleteIgnored(ZenfluxServer):
    """A deleted conversation is still there."""

    async def delete_conversation(self, request: web.Request) -> web.StreamResponse:
        self.named(request)
        return self.reply({"deleted": True})


@fault("ZF-HTTP-3.2-06", cases="conversations.messages_are_listed")
class OneMessage(ZenfluxServer):
    """Only the last message is listed."""

    def page(self, *given: Any) -> Body:
        page = super().page(*given)
        return page | {"messages": page["messages"][-1:]}


@fault("ZF-HTTP-3.2-07", cases=SEARCHED)
class FindsEverything(ZenfluxServer):
    """A search finds everything."""

    def needed(self, request: web.Request, name: str) -> str:
        return "" if name == "q" else super().needed(request, name)


@fault("ZF-HTTP-3.2-07", "G-ZF-35", "ZF-GEN-03", cases=f"{SEARCHED} paging.names_are_not_taken_for_ids {WRAPPED}")
class SearchIsAnId(ZenfluxServer):
    """search is taken for the id of a conversation."""

    async def search(self, request: web.Request) -> web.StreamResponse:
        return self.reply(self.shown(self.conversation("search")))


@fault("ZF-HTTP-3.2-08", cases=PREPARED)
class NoPreload(ZenfluxServer):
    """There is no preload."""

    async def preload(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPNotFound


@fault("ZF-HTTP-3.2-09", "ZF-GEN-03", cases=f"{PREPARED} {WRAPPED}")
class NoSummary(ZenfluxServer):
    """There is no summary."""

    async def summary(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPNotImplemented


@fault("G-ZF-29", cases=CURSOR)
class CursorIgnored(ZenfluxServer):
    """The cursor is not looked at."""

    def page(self, talk: Conversation, limit: int, request: web.Request) -> Body:
        return super().page(talk, limit, request.clone(rel_url=request.rel_url.without_query_params("before_cursor")))


class _Asked(ZenfluxServer):
    """Reads another query than the one that was asked."""

    def asked(self, query: dict[str, str]) -> dict[str, str]:
        raise NotImplementedError

    def page(self, talk: Conversation, limit: int, request: web.Request) -> Body:
        asked = self.asked(dict(request.query))
        return super().page(talk, limit, request.clone(rel_url=request.rel_url.with_query(asked)))


@fault("G-ZF-29", cases=CURSOR)
class OrderIgnored(_Asked):
    """What was asked for in the order desc comes in order of time."""

    def asked(self, query: dict[str, str]) -> dict[str, str]:
        return query | {"order": "asc"}


@fault("G-ZF-29", cases=OFFSET)
class NewestByDefault(_Asked):
    """Without an order the newest messages come."""

    def asked(self, query: dict[str, str]) -> dict[str, str]:
        return {"order": "desc"} | query


@fault("G-ZF-29", cases=CURSOR)
class BackwardsBeforeTheCursor(ZenfluxServer):
    """The order desc turns the page before a cursor upside down too."""

    def page(self, talk: Conversation, limit: int, request: web.Request) -> Body:
        page = super().page(talk, limit, request)
        if {"before_cursor", "order"} <= set(request.query):
            page["messages"] = page["messages"][::-1]
        return page


@fault("G-ZF-29", cases=CURSOR)
class CursorOfTheNewest(ZenfluxServer):
    """The cursor is the first message of a page, be it the newest."""

    def page(self, *given: Any) -> Body:
        page = super().page(*given)
        return page | ({"next_cursor": page["messages"][0]["id"]} if page["next_cursor"] else {})


@fault("G-ZF-29", cases="paging.a_call_is_kept_with_its_result")
class RoundsKeptApart(ZenfluxServer):
    """A call and its result are kept in the messages they were streamed in."""

    def finish(self, session: Session, status: str) -> None:
        results = [place for place, block in enumerate(session.blocks) if block["type"] == "tool_result"]
        for place in results[:1]:
            session.conversation.add("assistant", session.blocks[:place])
            session.blocks = session.blocks[place:]
        super().finish(session, status)


@fault("G-ZF-29", cases=OFFSET)
class AnyLimit(ZenfluxServer):
    """A limit that makes no sense is ignored."""

    def limit(self, request: web.Request, kind: str) -> int:
        try:
            return super().limit(request, kind)
        except Refusal:
            return 50


@fault("G-ZF-30", cases=COUNTED)
class OldestFirst(ZenfluxServer):
    """The conversation changed last is the last."""

    def owned(self, user: str) -> list[Conversation]:
        return super().owned(user)[::-1]


@fault("G-ZF-30", cases=COUNTED)
class BareHits(ZenfluxServer):
    """A search finds bare conversations."""

    def hit(self, talk: Conversation) -> Body:
        return self.shown(talk)


# -- files and models --------------------------------------------------------------------------------------------------


class _Uploading(ZenfluxServer):
    """Changes what is said of a file."""

    def about(self, file: Body) -> Body:
        raise NotImplementedError

    def upload(self, file: web.FileField) -> Body:
        return self.about(super().upload(file))


@fault("ZF-HTTP-3.4-01", cases=f"{TAKEN} files.an_upload_can_be_sent_along")
class FileWithoutId(_Uploading):
    """An upload has no file_id."""

    def about(self, file: Body) -> Body:
        return {name: value for name, value in file.items() if name != "file_id"}


@fault("ZF-HTTP-3.4-01", cases=TAKEN)
class SizeInText(_Uploading):
    """The size of a file is a text."""

    def about(self, file: Body) -> Body:
        return file | {"file_size": f"{file['file_size']} bytes"}


@fault("ZF-HTTP-3.4-01", cases="files.a_form_without_a_file_is_refused")
class FormWithoutFile(ZenfluxServer):
    """A form without a file is an empty file."""

    async def post_file(self, request: web.Request) -> web.StreamResponse:
        try:
            return await super().post_file(request)
        except Refusal:
            return self.reply({"file_id": "0", "file_size": 0})


@fault("G-ZF-32", cases="files.odd_uploads_do_no_harm")
class EmptyFilesWeigh(_Uploading):
    """An empty file is said to have a size."""

    def about(self, file: Body) -> Body:
        return file | {"file_size": file["file_size"] or 1}


@fault("G-ZF-32", cases="files.odd_names_lead_nowhere")
class NamesAsTheyAre(_Uploading):
    """The name of a file is part of its address, as it is."""

    def file_name(self, given: str) -> str:
        return given

    def about(self, file: Body) -> Body:
        return file | {"file_url": f"/files/{file['file_name']}"}


@fault("ZF-HTTP-3.8-01", cases="models.models_are_listed")
class NoModels(ZenfluxServer):
    """There are no models."""

    def models(self, kind: str | None, provider: str | None) -> list[Body]:
        return []


@fault("ZF-HTTP-3.8-01", cases="models.models_are_filtered")
class ModelsUnfiltered(ZenfluxServer):
    """The list of models is always whole."""

    def models(self, kind: str | None, provider: str | None) -> list[Body]:
        return super().models(None, None)


@fault("ZF-HTTP-3.2-06", cases="conversations.the_users_words_are_kept")
class WordsTrimmed(ZenfluxServer):
    """Blanks at the ends of what the user says are lost."""

    def begin(self, params: Body, has_rounds: bool) -> Session:
        return super().begin(params | {"message": params["message"].strip()}, has_rounds)
