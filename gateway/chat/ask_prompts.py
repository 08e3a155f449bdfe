"""Shows the asks of an agent at the prompt, and makes answers from what the person types."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import gateway.model as m
from gateway.ports import RemoteAsk

from .terminal_input import Prompt
from .text_layout import as_json, indented_json, shorten

YES = ("y", "yes")
NO = ("n", "no", "")
DECLINED = "The user declined to carry out this call."
ONE_LINE_LENGTH = 100
"""Input of a call with at most this many characters is shown beside the name of the tool."""
MAX_TRIES = 5
"""How often a question is repeated if the person gives no valid answer."""


class AskScreen(Protocol):
    def ask(self, text: str) -> None: ...
    def note(self, text: str) -> None: ...


class AskPrompter:
    """Shows asks to a person, and turns the typed answers into commands."""

    def __init__(self, screen: AskScreen, prompt: Prompt) -> None:
        self._screen, self._prompt = screen, prompt

    def answers(self, asked: Sequence[RemoteAsk]) -> list[tuple[RemoteAsk, m.Answer]]:
        return [(one, PROMPTS[type(one.ask)](self, one.ask, one.ref)) for one in asked]

    # -- one method per kind of ask -------------------------------------------------------------------------------

    def _questions(self, ask: m.QuestionAsk, ref: str) -> m.Answer:
        selections: dict[str, tuple[int, ...]] = {}
        custom: dict[str, str] = {}
        for number, question in enumerate(ask.questions):
            picks, words = self._question(question)
            if picks:
                selections[str(number)] = picks
            elif words:
                custom[str(number)] = words
            else:
                return m.Withdraw(request_id=ref)
        return m.AnswerQuestion(request_id=ref, selections=selections, custom=custom)

    def _question(self, question: m.Question) -> tuple[tuple[int, ...], str]:
        """Ask one question: numbers choose options, other text is a free answer; repeated empty input is none."""
        self._screen.ask(f"? {f'{question.header}: ' if question.header else ''}{question.question}")
        for number, option in enumerate(question.options, 1):
            self._screen.ask(f"  {number}. {option.label}{f' - {option.description}' if option.description else ''}")
        label = _prompt_label(question)
        for _ in range(MAX_TRIES):
            text = self._prompt.read(label).strip()
            numbers = _numbers(text) if question.options else None
            if text and numbers is None:
                return (), text
            picks = _picks(numbers or (), len(question.options))
            if picks and (len(picks) == 1 or question.multi_select):
                return picks, ""
            self._screen.note(_hint(numbers, picks, len(question.options)))
        return (), ""

    def _permission(self, ask: m.PermissionAsk, ref: str) -> m.Answer:
        if ask.description:
            self._screen.ask(f"? {ask.description}")
        self._call(" " if ask.description else "? May the agent call", ask.call)
        text = self._prompt.read("allow? [y/N, or why not] ").strip()
        granted = text.lower() in YES
        return m.DecidePermission(
            request_id=ref, granted=granted, reason=None if granted or text.lower() in NO else text,
        )

    def _result(self, ask: m.ClientToolAsk, ref: str) -> m.Answer:
        self._call("? The agent asks you to run", ask.call)
        text = self._prompt.read("result [empty declines] ").strip()
        return m.ReturnResult(request_id=ref, content=text or DECLINED, is_error=not text)

    def _call(self, question: str, call: m.ToolCall) -> None:
        """Show a call with its whole input: nobody should allow a call that they have not seen."""
        given = as_json(call.input) if call.input else ""
        beside = f" {given}" if given and len(given) <= ONE_LINE_LENGTH else ""
        self._screen.ask(f"{question} {shorten(call.display_name or call.name, 80)}{beside}")
        for line in () if len(given) <= ONE_LINE_LENGTH else indented_json(call.input):
            self._screen.ask(f"  {line}")

    def _continuation(self, ask: m.ContinuationAsk, ref: str) -> m.Answer:
        self._screen.ask(f"? {ask.message}")
        text = self._prompt.read("go on? [Y/n] ").strip().lower()
        return m.ContinueTurn(request_id=ref, proceed=text in ("", *YES))

    def _rollback(self, ask: m.RollbackAsk, ref: str) -> m.Answer:
        for words in filter(None, (ask.error, ask.reason)):
            self._screen.ask(f"? {words}")
        for number, option in enumerate(ask.options, 1):
            self._screen.ask(f"  {number}. {_option(option)}")
        for _ in range(MAX_TRIES):
            numbers = _numbers(self._prompt.read("roll back to? [a number; empty changes nothing] "))
            if numbers == ():
                break
            picks = _picks(numbers or (), len(ask.options))
            if picks is not None and len(picks) == 1:
                chosen = ask.options[picks[0]]
                return m.RollBack(request_id=ref, option=str(chosen.get("id", picks[0])))
            self._screen.note(_hint(numbers, picks, len(ask.options)))
        return m.RollBack(request_id=ref)


def _prompt_label(question: m.Question) -> str:
    if not question.options:
        return "answer: "
    return "numbers, or your own words: " if question.multi_select else "a number, or your own words: "


def _numbers(text: str) -> tuple[int, ...] | None:
    """Return the numbers of the input; an empty list for empty input, None for other text."""
    words = text.replace(",", " ").split()
    if not all(word.isdecimal() and word.isascii() and len(word) < 5 for word in words):
        return None
    return tuple(map(int, words))


def _picks(numbers: Sequence[int], options: int) -> tuple[int, ...] | None:
    """Return the indexes of the options that the numbers choose; None if an option does not exist."""
    if not all(1 <= number <= options for number in numbers):
        return None
    return tuple(dict.fromkeys(number - 1 for number in numbers))


def _hint(numbers: Sequence[int] | None, picks: Sequence[int] | None, options: int) -> str:
    """Return a hint about valid answers."""
    if numbers and picks is None:
        strange = next(number for number in numbers if not 1 <= number <= options)
        return f"there is no option {strange}: say {f'1 to {options}' if options > 1 else '1'}"
    return "type one number" if numbers != () else "type an answer"


def _option(option: Mapping[str, object]) -> str:
    names = ("label", "title", "description", "action", "id")
    words = next((option[name] for name in names if option.get(name)), None)
    return shorten(str(words)) if words is not None else shorten(as_json(option))


PROMPTS: dict[type, Callable[[AskPrompter, Any, str], m.Answer]] = {
    m.QuestionAsk: AskPrompter._questions,
    m.PermissionAsk: AskPrompter._permission,
    m.ClientToolAsk: AskPrompter._result,
    m.ContinuationAsk: AskPrompter._continuation,
    m.RollbackAsk: AskPrompter._rollback,
}
