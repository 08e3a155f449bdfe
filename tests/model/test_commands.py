"""What a client can want."""

from typing import get_args

from gateway.model import ANSWERS, COMMANDS, Answer, AnyCommand


def test_the_lists_and_the_unions_name_the_same() -> None:
    assert set(get_args(AnyCommand)) == set(COMMANDS)
    assert set(get_args(Answer)) == set(ANSWERS)
    assert set(ANSWERS) < set(COMMANDS)


def test_every_command_has_a_word_of_its_own() -> None:
    kinds = [command.kind for command in COMMANDS]
    assert len(set(kinds)) == len(kinds)
    assert all(command.__struct_config__.tag == command.kind for command in COMMANDS)
