"""Reads asks from a server's confirmation requests, with what is needed to answer them later."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

import gateway.model as m
from adapters.zenflux.asks import APPROVE, REJECT, AskRef

from .readers import Bindings, members, text

MULTIPLE_CHOICE_TYPES = ("multiple_choice", "multi_choice", "multi_select", "checkbox")
CHOICE_TYPES = (*MULTIPLE_CHOICE_TYPES, "single_choice", "text_input", "text", "form")
Calls = Mapping[str, m.ToolCall]
"""The open calls."""








# -- confirmation requests --------------------------------------------------------------------------------------------

def read_confirmation(
    asked: dict[str, Any] | None, calls: Calls, run: str, seq: int
) -> tuple[m.AnyAsk, AskRef] | None:
    """The ask that a confirmation request stands for; None if it is settled.

    If the call of a permission is unknown, the request is a question like any other.
    """
    content = asked or {}
    if content.get("status") not in (None, "pending"):
        return None
    kind = text(members(content.get("metadata")).get("kind"))
    call = _call_of(content, calls)
    ref = AskRef(
        run=run, kind=kind, request_id=text(content.get("request_id")) or run, seq=seq, precise=bool(kind),
    )
    if kind == "client_tool" and call is not None:
        return m.ClientToolAsk(call=call), ref
    if _is_form(content, kind, call):
        questions, ids = _questions(content)
        return m.QuestionAsk(questions=questions, call=call), replace(ref, kind="question", ids=ids)
    assert call is not None, "a permission that is no form is about a call"
    permitted = replace(call, permission=m.Permission.ASK)
    return m.PermissionAsk(call=permitted, description=_question_text(content)), replace(ref, kind="permission")


def _is_form(content: dict[str, Any], kind: str, call: m.ToolCall | None) -> bool:
    if kind:
        return kind != "permission" or call is None
    choosing = content.get("confirmation_type", content.get("type")) in CHOICE_TYPES and not _is_verdict(content)
    return bool(content.get("questions")) or choosing or call is None


def _is_verdict(content: dict[str, Any]) -> bool:
    return content.get("options") == [APPROVE, REJECT]


def _call_of(content: dict[str, Any], calls: Calls) -> m.ToolCall | None:
    """The call of that id, if the server sends one; else the last call of the tool's name."""
    call_id = members(content.get("metadata")).get("tool_use_id")
    if isinstance(call_id, str):
        return calls.get(call_id)
    named = [call for call in calls.values() if call.name == content.get("tool_name")]
    return named[-1] if named else None


def _question_text(content: dict[str, Any]) -> str:
    return next((said for key in ("question", "title", "label", "description") if (said := text(content.get(key)))), "")


def _questions(content: dict[str, Any]) -> tuple[tuple[m.Question, ...], tuple[str, ...]]:
    asked = content.get("questions")
    forms = [members(one) for one in asked] if isinstance(asked, list) else []
    if not forms:
        return (_question(content),), ()
    ids = tuple(text(one.get("id")) or str(number) for number, one in enumerate(forms))
    return tuple(map(_question, forms)), ids


def _question(form: dict[str, Any]) -> m.Question:
    options, about = form.get("options"), form.get("descriptions")
    choices = [_choice(one) for one in options] if isinstance(options, list) else []
    if isinstance(about, list):
        choices = [
            m.Choice(label=choice.label, description=text(words) or choice.description)
            for choice, words in zip(choices, [*about, *[""] * len(choices)], strict=False)
        ]
    return m.Question(
        question=_question_text(form) or "?", options=tuple(choices), header=text(form.get("header")) or None,
        multi_select=any(form.get(key) in MULTIPLE_CHOICE_TYPES for key in ("type", "confirmation_type")),
    )


def _choice(option: Any) -> m.Choice:
    if isinstance(option, dict):
        label = next((said for key in ("label", "title", "value", "id") if (said := text(option.get(key)))), "")
        label = label or msgspec.json.encode(option).decode()
        return m.Choice(label=label, description=text(option.get("description")) or None)
    return m.Choice(label=option if isinstance(option, str) else msgspec.json.encode(option).decode())


# -- long and failed runs ---------------------------------------------------------------------------------------------

def read_continuation(given: Bindings, run: str) -> tuple[m.AnyAsk, AskRef]:
    ask = m.ContinuationAsk(turn=given["ask"]["turn"] or 0, message=given["ask"]["message"] or "")
    return ask, AskRef(run=run, kind=ask.kind, seq=given["out_seq"] or 0)


def read_rollback(given: Bindings, run: str) -> tuple[m.AnyAsk, AskRef]:
    """An option that is a text has the text as its id."""
    told = given["ask"]
    ask = m.RollbackAsk(
        task_id=told["task_id"] or "",
        options=tuple(one if isinstance(one, dict) else {"id": str(one), "label": str(one)}
                      for one in given["options"] or ()),
        error=told["error"], reason=told["reason"],
    )
    return ask, AskRef(run=run, kind=ask.kind, seq=given["out_seq"] or 0)
