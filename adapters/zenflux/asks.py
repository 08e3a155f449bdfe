"""How ZenFlux asks people, by confirmation requests, in the stream and over HTTP."""

from collections.abc import Mapping, Sequence

import msgspec
import orjson
from msgspec import Struct

import gateway.model as m
from adapters.zenflux.bodies import ConfirmationBody, QuestionBody, spell
from gateway.errors import BackendFailed, Invalid
from gateway.json_values import JsonValue
from gateway.ports import DialectTable
from mappings.language import UnreadableBody

APPROVE, REJECT = "approve", "reject"


def confirmation_body(table: DialectTable, ask: m.OpenAsk, session_id: str) -> object:
    return spell(table, confirmation(ask, session_id))


def confirmation(ask: m.OpenAsk, session_id: str) -> ConfirmationBody:
    call = m.call_of(ask.ask)
    kind, question, options = _form_of(ask.ask)
    return ConfirmationBody(
        request_id=ask.request_id, run_id=ask.turn_id, session_id=session_id, type=kind,
        tool_name=call.name if call else ask.ask.kind, question=question, description=_description(ask.ask, question),
        options=options, questions=_questions(ask.ask), timeout=_timeout(ask), at=ask.at, kind=ask.ask.kind, call=call,
    )


def rollback_options(ask: m.RollbackAsk, *, objects: bool) -> list[JsonValue]:
    """As text, as documented; or as the agent gave them, for a front end that draws them."""
    return list(ask.options) if objects else [option_label(option) for option in ask.options]


def option_ids(ask: m.RollbackAsk) -> list[str]:
    """By these an option can be chosen, whatever it is called."""
    return [str(option.get("id", option_label(option))) for option in ask.options]


def option_label(option: Mapping[str, object]) -> str:
    words = [str(option[key]) for key in ("label", "action", "target") if option.get(key)]
    return ": ".join(words) or str(option.get("id", option))


def _form_of(ask: m.AnyAsk) -> tuple[str, str, list[str]]:
    """The form that a person sees, its question and its options."""
    if isinstance(ask, m.PermissionAsk):
        return "yes_no", ask.description or f"Allow {ask.call.display_name or ask.call.name}?", [APPROVE, REJECT]
    if isinstance(ask, m.QuestionAsk):
        only = ask.questions[0].options if len(ask.questions) == 1 else ()
        return "form", " ".join(one.question for one in ask.questions), [choice.label for choice in only]
    if isinstance(ask, m.ClientToolAsk):
        return "text_input", f"What does {ask.call.display_name or ask.call.name} give?", []
    if isinstance(ask, m.ContinuationAsk):
        return "yes_no", ask.message, [APPROVE, REJECT]
    return "single_choice", ask.reason or ask.error or "Roll back?", [option_label(option) for option in ask.options]


def _description(ask: m.AnyAsk, question: str) -> str:
    """What a person has to know beside the question: above all the input of the tool call."""
    if isinstance(ask, m.PermissionAsk):
        return _call_text(ask.call)
    if isinstance(ask, m.ClientToolAsk):
        return f"The agent calls a tool of its client: {_call_text(ask.call)}. Answer with its result."
    error = ask.error if isinstance(ask, m.RollbackAsk) else None
    return error if error and error != question else ""


def _call_text(call: m.ToolCall) -> str:
    return f"{call.name} {orjson.dumps(call.input).decode()}"


def _questions(ask: m.AnyAsk) -> list[QuestionBody] | None:
    if not isinstance(ask, m.QuestionAsk):
        return None
    return [_question(number, question) for number, question in enumerate(ask.questions)]


def _question(number: int, question: m.Question) -> QuestionBody:
    kind = "text_input" if not question.options else "multiple_choice" if question.multi_select else "single_choice"
    return QuestionBody(
        id=str(number), question=question.question, header=question.header, type=kind,
        options=[choice.label for choice in question.options],
        descriptions=[choice.description or "" for choice in question.options],
    )


def _timeout(ask: m.OpenAsk) -> int | None:
    """Seconds in which it can be answered, from when it was asked."""
    return None if ask.expires_at is None else round(ask.expires_at - ask.at)


def result_text(content: m.Content) -> str:
    """The result of a tool as text; its images as Markdown."""
    if isinstance(content, str):
        return content
    return "".join(
        part.text if isinstance(part, m.TextPart) else m.image_markdown(part)
        for part in m.parts_of(content) if isinstance(part, m.TextPart | m.ImagePart)
    )


CANCEL_WORDS = ("cancel", "cancelled", "canceled")


def answer_of(ask: m.OpenAsk, response: object, table: DialectTable) -> m.AnyCommand:
    """What a response means to this ask: a verdict, choices, a text, or a withdrawal."""
    word, given = _word(response), {"request_id": ask.request_id}
    if word in CANCEL_WORDS:
        return table.command("confirm.cancel", **given)
    if isinstance(ask.ask, m.QuestionAsk):
        selections, custom = _answers(ask.ask, response)
        return table.command("confirm.question", **given, selections=selections, custom=custom)
    if isinstance(ask.ask, m.RollbackAsk):
        return table.command("confirm.rollback", **given, option=option_of(ask.ask, response))
    if ask.ask.kind == "client_tool":
        return table.command("confirm.client_tool", **given, content=_text(response), is_error=word == REJECT)
    return _decision(ask, response, table)


def _decision(ask: m.OpenAsk, response: object, table: DialectTable) -> m.AnyCommand:
    """A response to a permission that is neither yes nor no is a no, with the response as its reason."""
    is_permission = isinstance(ask.ask, m.PermissionAsk)
    row = "confirm.permission" if is_permission else "confirm.continuation"
    try:
        return table.read_command(row, {"response": _word(response)}, request_id=ask.request_id)
    except UnreadableBody:
        if not is_permission:
            raise Invalid("response: say approve or reject", param="response") from None
        return table.command(row, request_id=ask.request_id, granted=False, reason=_text(response))


def option_of(ask: m.RollbackAsk, chosen: object) -> str | None:
    """The id of an option that was named by its id, its text or its number; the first, if none was."""
    ids = option_ids(ask)
    if chosen is None or _word(chosen) in ("approve", "confirm", "yes"):
        return ids[0] if ids else None
    if type(chosen) is int and 0 <= chosen < len(ids):
        return ids[chosen]
    for name, option in zip(ids, ask.options, strict=True):
        if chosen in (name, option_label(option), option):
            return name
    raise Invalid(f"option: there is no option {_text(chosen)}; there are {', '.join(ids)}", param="option")


def _answers(ask: m.QuestionAsk, response: object) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """Chosen options and free text, both by question number; a number is that of an option, from 0 on."""
    selections: dict[str, tuple[int, ...]] = {}
    custom: dict[str, str] = {}
    for number, value in _by_question(ask, response).items():
        labels = [choice.label for choice in ask.questions[number].options]
        folded = [label.casefold() for label in labels]
        chosen = [_option_label_of(labels, one) for one in (value if isinstance(value, list) else [value])]
        picks = [folded.index(one.casefold()) for one in chosen if one.casefold() in folded]
        free = [one for one in chosen if one.casefold() not in folded]
        if picks:
            selections[str(number)] = tuple(dict.fromkeys(picks))
        if free:
            custom[str(number)] = ", ".join(free)
    return selections, custom


def _option_label_of(labels: Sequence[str], chosen: object) -> str:
    """The text of an answer; if there are options, a number stands for the text of one."""
    if type(chosen) is not int or not labels:
        return _text(chosen)
    if not 0 <= chosen < len(labels):
        raise Invalid(f"response: there is no option {chosen}; they are numbered from 0 to {len(labels) - 1}",
                      param="response")
    return labels[chosen]


def _by_question(ask: m.QuestionAsk, response: object) -> dict[int, object]:
    """An object names the questions, an array takes them in order, and anything else answers each of them."""
    count = len(ask.questions)
    if isinstance(response, dict):
        return {_number(ask, name): value for name, value in response.items() if value is not None}
    if isinstance(response, list) and count > 1:
        if len(response) > count:
            raise Invalid(f"response: {len(response)} answers to {count} questions", param="response")
        return dict(enumerate(response))
    return dict.fromkeys(range(count), response)


def _number(ask: m.QuestionAsk, name: str) -> int:
    for number, question in enumerate(ask.questions):
        if name in (str(number), question.header, question.question):
            return number
    raise Invalid(f"response: there is no question '{name}'", param="response")


def _word(response: object) -> str:
    return _text(response).strip().lower()


def _text(response: object) -> str:
    return response if isinstance(response, str) else orjson.dumps(response).decode()


class AskRef(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where an answer goes: which run, which request, and the last event of the run before the ask."""

    run: str
    kind: str
    request_id: str = ""
    seq: int = 0
    ids: tuple[str, ...] = ()
    """The server's names of its questions, in order; none if the answer is one word."""
    precise: bool = False
    """Whether the server names the kind of its asks, and so takes each answer by the ask's own id."""


def encode_ref(ref: AskRef) -> str:
    return msgspec.json.encode(ref).decode()


def decode_ref(word: str) -> AskRef:
    try:
        return msgspec.json.decode(word, type=AskRef)
    except msgspec.MsgspecError:
        raise BackendFailed("this is no ask of a ZenFlux server") from None
