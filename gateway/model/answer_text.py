"""Answers in plain words: what a bare text means to an ask, and what an answer looks like as a text."""


import msgspec

from gateway.json_values import JsonObject, JsonValue

from .asks import AnyAsk, ContinuationAsk, QuestionAsk, RollbackAsk
from .commands import AnswerQuestion
from .content import QUESTION_TOOL, Content, ToolCall, text_of

NO = ("no", "stop", "false")


def parse_answer(ask: AnyAsk, content: Content) -> dict[str, object] | None:
    """The fields of the answer that a returned text gives to this ask; None where words are no answer to it."""
    words = text_of(content).strip()
    if isinstance(ask, QuestionAsk):
        return {"custom": parse_question_answers(ask, words), "said": content}
    if isinstance(ask, ContinuationAsk):
        return {"proceed": words.lower() not in NO}
    return {"option": words} if isinstance(ask, RollbackAsk) else None


def parse_question_answers(ask: QuestionAsk, words: str) -> dict[str, str]:
    """The answer to each question by its number: a JSON object by header or text, a JSON array in order, or plain text.

    Plain text answers every question that there is. An object or an array that answers too few or too many is returned
    as it is: the session refuses it and names the question.
    """
    given = _parsed(words)
    if isinstance(given, dict) and (len(ask.questions) > 1 or _answers_by_header(ask, given)):
        return _answers_by_header(ask, given)
    if isinstance(given, list) and (len(ask.questions) > 1 or len(given) == 1):
        return {str(number): _as_text(one) for number, one in enumerate(given)}
    return _split_by_header(ask, words) or {str(number): words for number in range(len(ask.questions))}


def _parsed(words: str) -> JsonValue:
    try:
        return msgspec.json.decode(words) if words[:1] in ("{", "[") else None
    except (msgspec.DecodeError, RecursionError):
        return None


def _answers_by_header(ask: QuestionAsk, given: JsonObject) -> dict[str, str]:
    """What the object has under each question's text or, where no other question shares it, under its header."""
    headers = [question.header for question in ask.questions]
    found: dict[str, str] = {}
    for number, question in enumerate(ask.questions):
        keys = [question.question, *([question.header] if headers.count(question.header) == 1 else [])]
        found |= {str(number): _as_text(given[key]) for key in keys if key in given}
    return found


def _as_text(answer: object) -> str:
    """One answer in words; several choices stand in an array."""
    if isinstance(answer, list):
        return ", ".join(map(_as_text, answer))
    return answer.strip() if isinstance(answer, str) else msgspec.json.encode(answer).decode()


def question_call(ask: QuestionAsk, call_id: str) -> ToolCall:
    """The questions as the call of a tool that is known by this name and input by many agents and clients."""
    questions = [
        {
            "question": one.question, "header": one.header or "", "multiSelect": one.multi_select,
            "options": [{"label": choice.label, "description": choice.description or ""} for choice in one.options],
        }
        for one in ask.questions
    ]
    return ToolCall(call_id=call_id, name=QUESTION_TOOL, input={"questions": questions})


def is_question_call(call: ToolCall | None) -> bool:
    """Whether this call of an agent is itself the question that is asked."""
    return call is not None and call.how_to_answer is not None


def format_answer(ask: QuestionAsk, answer: AnswerQuestion) -> str:
    """`Colour: Red; Fruits: Apple, Cherry`; if all questions have the same answer, it is written once."""
    texts = [_chosen_text(ask, answer, number) for number in range(len(ask.questions))]
    if len(set(texts)) > 1:
        texts = [f"{head}: {words}" for head, words in zip(_headers(ask), texts, strict=True)]
    return "; ".join([*dict.fromkeys(texts), *([answer.message] if answer.message else [])])


def _headers(ask: QuestionAsk) -> list[str]:
    return [question.header or question.question for question in ask.questions]


def _split_by_header(ask: QuestionAsk, text: str) -> dict[str, str]:
    """The words for each question, where every one is named as `format_answer` names it; otherwise none."""
    at, starts = 0, list[tuple[int, int]]()
    for number, head in enumerate(_headers(ask)):
        named = f"{head}: " if not number else f"; {head}: "
        start = text.find(named, at) if number else (0 if text.startswith(named) else -1)
        if start < 0:
            return {}
        at = start + len(named)
        starts.append((start, at))
    ends = [start for start, _ in starts[1:]] + [len(text)]
    return {str(number): text[begin:end] for number, ((_, begin), end) in enumerate(zip(starts, ends, strict=True))}


def _chosen_text(ask: QuestionAsk, answer: AnswerQuestion, number: int) -> str:
    options = ask.questions[number].options
    picks = [options[at].label for at in answer.selections.get(str(number), ()) if 0 <= at < len(options)]
    free = answer.custom.get(str(number))
    return ", ".join([*picks, *([free] if free else [])])
