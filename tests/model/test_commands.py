"""What a client can want."""

from typing import get_args

import gateway.model as m


def test_the_lists_and_the_unions_name_the_same() -> None:
    assert set(get_args(m.AnyCommand)) == set(m.COMMANDS)
    assert set(get_args(m.Answer)) == set(m.ANSWERS)
    assert set(m.ANSWERS) < set(m.COMMANDS)


def test_every_command_has_a_word_of_its_own() -> None:
    kinds = [command.kind for command in m.COMMANDS]
    assert len(set(kinds)) == len(kinds)
    assert all(command.__struct_config__.tag == command.kind for command in m.COMMANDS)
