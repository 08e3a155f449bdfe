"""Makes values of the model from frames and bodies of ZenFlux, as the table binds them: faults, lists, asks."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

import gateway.model as m
from adapters.zenflux.asks import APPROVE, REJECT, AskRef
from adapters.zenflux.bodies import ConfirmationBody, OpenConfirmation, QuestionBody, ReplyBody
from gateway.client import members
from gateway.errors import BackendFailed
from gateway.json_values import JsonObject, JsonValue
from mappings.language import Bindings, ServerTable

ZENFLUX = ServerTable("adapters.zenflux", "json", "sse")
MULTIPLE_CHOICE_TYPES = ("multiple_choice", "multi_choice", "multi_select", "checkbox")
CHOICE_TYPES = (*MULTIPLE_CHOICE_TYPES, "single_choice", "text_input", "text", "form")
Calls = Mapping[str, m.ToolCall]
"""The open calls."""


class RunEvent:
    """A frame that the table has: its cue, what stands in its envelope, and its other bindings."""

    ENVELOPE = ("run_id", "session_id", "out_seq")
    __slots__ = ("cue", "error", "given", "run_id", "seq", "session_id")

    def __init__(self, cue: str, given: Bindings, error: BackendFailed | None = None) -> None:
        self.cue, self.given, self.error = cue, given, error
        """`error` says why the frame cannot be understood; then it has no bindings."""
        self.run_id: str = given.pop("run_id", None) or ""
        self.session_id: str = given.pop("session_id", None) or ""
        self.seq: int = max(0, given.pop("out_seq", None) or 0)


def read_fault(code: m.FaultCode | None, fault: Bindings) -> m.Fault:
    """A server that fails by itself is a failed agent; one that is unavailable may be retried."""
    code, retryable = code or m.FaultCode.INTERNAL, fault["retryable"]
    return m.Fault(
        code=m.FaultCode.BACKEND if code is m.FaultCode.INTERNAL else code,
        message=fault["message"] or "the server did not say what went wrong",
        retryable=retryable if retryable is not None else code is m.FaultCode.BACKEND or code.is_retryable,
    )


# -- replies over HTTP ------------------------------------------------------------------------------------------------

def unwrap(body: JsonValue) -> Any:
    """The data of an answer, in its wrapper or without."""
    if not isinstance(body, dict):
        return body
    reply = ZENFLUX.read(ReplyBody.row, body)
    return reply["flat"] if reply["data"] is None else reply["data"]


def read_list(row: str, data: JsonValue) -> list[Bindings]:
    """The bindings of the bodies of a list, which may be bare or under its name; empty if the data are not a list."""
    found: list[Bindings] | None = ZENFLUX.read(row, data)["items"]
    return found or []


def read_body(row: str, body: JsonValue) -> Bindings:
    """The bindings of a body; a body that is not an object has no members."""
    return ZENFLUX.read(row, members(body))


# -- confirmation requests --------------------------------------------------------------------------------------------

def read_confirmation(body: JsonObject | None, calls: Calls, run: str, seq: int) -> tuple[m.AnyAsk, AskRef] | None:
    """The ask that a confirmation request stands for; None if it is settled.

    If the call of a permission is unknown, the request is a question like any other.
    """
    if not ZENFLUX.table.is_object(OpenConfirmation.row, body or {}):
        return None
    asked = read_body(ConfirmationBody.row, body)
    kind, call = asked["kind"] or "", _call_of(asked, calls)
    ref = AskRef(run=run, kind=kind, request_id=asked["request_id"] or run, seq=seq, precise=bool(kind))
    if kind == m.ClientToolAsk.kind and call is not None:
        return m.ClientToolAsk(call=call), ref
    if call is None or _is_form(asked, kind):
        questions, ids = _questions(body, asked["questions"])
        return m.QuestionAsk(questions=questions, call=call), replace(ref, kind=m.QuestionAsk.kind, ids=ids)
    permitted = replace(call, permission=m.Permission.ASK)
    ask = m.PermissionAsk(call=permitted, description=asked["question"] or "")
    return ask, replace(ref, kind=m.PermissionAsk.kind)


def _is_form(asked: Bindings, kind: str) -> bool:
    if kind:
        return kind != m.PermissionAsk.kind
    is_verdict = asked["options"] == [APPROVE, REJECT]
    return bool(asked["questions"]) or (asked["form"] in CHOICE_TYPES and not is_verdict)


def _call_of(asked: Bindings, calls: Calls) -> m.ToolCall | None:
    """The call of that id, if the server sends one; else the last call of the tool's name."""
    call_id = asked["call"]["call_id"]
    if call_id is not None:
        return calls.get(call_id)
    named = [call for call in calls.values() if call.name == asked["tool_name"]]
    return named[-1] if named else None


def _questions(body: JsonValue, forms: list[Bindings] | None) -> tuple[tuple[m.Question, ...], tuple[str, ...]]:
    """A request without a list of questions is a question itself."""
    rows = forms or [read_body(QuestionBody.row, body)]
    ids = tuple(one["id"] or str(number) for number, one in enumerate(rows)) if forms else ()
    return tuple(map(_question, rows)), ids


def _question(form: Bindings) -> m.Question:
    options, about = form["options"] or (), form["descriptions"] or ()
    choices = zip(options, form["choices"] or (), [*about, *[None] * len(options)], strict=False)
    return m.Question(
        question=form["question"] or "?", options=tuple(_choice(*one) for one in choices), header=form["header"],
        multi_select=any(kind in MULTIPLE_CHOICE_TYPES for kind in (form["type"], form["form"])),
    )


def _choice(option: object, bindings: Bindings, about: object) -> m.Choice:
    """An option that has no label is shown as it is."""
    label = option if isinstance(option, str) else bindings["label"] or msgspec.json.encode(option).decode()
    return m.Choice(label=label, description=about if isinstance(about, str) and about else bindings["description"])


# -- long and failed runs ---------------------------------------------------------------------------------------------

def read_continuation(bindings: Bindings, run: str, seq: int) -> tuple[m.AnyAsk, AskRef]:
    ask = m.ContinuationAsk(turn=bindings["turn"] or 0, message=bindings["message"] or "")
    return ask, AskRef(run=run, kind=ask.kind, seq=seq)


def read_rollback(bindings: Bindings, options: list[object] | None, run: str, seq: int) -> tuple[m.AnyAsk, AskRef]:
    """An option that is a text has the text as its id."""
    ask = m.RollbackAsk(
        task_id=bindings["task_id"] or "",
        options=tuple(one if isinstance(one, dict) else {"id": str(one), "label": str(one)}
                      for one in options or ()),
        error=bindings["error"], reason=bindings["reason"],
    )
    return ask, AskRef(run=run, kind=ask.kind, seq=seq)
