"""What CAS clients send to the catalog: taken literally, given back whole, and silent about secrets."""

import pytest
from pydantic import ValidationError

from adapters.cas.wire.agents import AgentChange, NewAgent, Toolset
from adapters.cas.wire.stores import CredentialChange, MemoryChange, NewCredential, NewMemory


def test_what_nobody_knows_is_given_back_in_lists_and_ignored_elsewhere() -> None:
    said = {"name": "a", "model": {"id": "m", "speed": "fast"}, "later": 1,
            "tools": [{"type": "agent_toolset_20260401", "later": {"deep": [1]}}]}
    told = NewAgent.model_validate(said).model_dump(exclude_unset=True)
    assert told == {key: value for key, value in said.items() if key != "later"}


def test_types_are_taken_literally() -> None:
    for version in ("1", 1.0, True):
        with pytest.raises(ValidationError):
            AgentChange.model_validate({"version": version})
    with pytest.raises(ValidationError):
        Toolset.model_validate({"type": "agent_toolset_20260401", "configs": [{"name": "x", "enabled": "yes"}]})


def test_secrets_do_not_show_themselves() -> None:
    bearer = {"type": "static_bearer", "mcp_server_url": "https://mcp.example", "token": "s3cret"}
    for said in (NewCredential.model_validate({"auth": bearer}), CredentialChange.model_validate({"auth": bearer})):
        assert "s3cret" not in f"{said} {said!r}"


@pytest.mark.parametrize("path", ["a", "/a", "a/b.md", "/ä/ö", "a b"])
def test_a_memory_is_at_a_path(path: str) -> None:
    assert NewMemory(path=path, content="").path == path


def test_a_change_of_a_memory_may_name_what_it_changes() -> None:
    assert MemoryChange.model_validate({}).expected is None
    assert MemoryChange.model_validate({"content_sha256": "x"}).expected == "x"
    condition = {"type": "content_sha256", "content_sha256": "y"}
    assert MemoryChange.model_validate({"precondition": condition}).expected == "y"
