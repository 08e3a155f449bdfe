"""CAS profiles: what they say can be asked for, what they do not say is not testable."""

from pathlib import Path

import pytest

from conformance.cas.profile import CasProfile, toolset
from conformance.kit.documents import DocumentError, read_document
from conformance.kit.expect import NotTestable
from conformance.kit.suite import Suite


def test_the_default_profile_names_every_situation(cas: Suite) -> None:
    profile = cas.read_profile()
    assert isinstance(profile, CasProfile)
    assert all(profile.prompts.model_dump().values())
    assert profile.policies == {"search": "always_allow", "clock": "always_allow", "calc": "always_ask"}
    assert [tool["type"] for tool in profile.custom_tools] == ["custom"]


def test_what_is_missing_is_not_testable() -> None:
    profile = CasProfile()
    for ask in (lambda: profile.prompt("text"), lambda: profile.server_tool("asked_tool")):
        with pytest.raises(NotTestable, match="the profile has no entry"):
            ask()
    assert (profile.policies, profile.custom_tools) == ({}, [])


def test_a_toolset_names_its_tools_and_their_policies() -> None:
    (found,) = toolset({"calc": "always_ask"})
    assert found["enabled_tools"] == ["calc"]
    assert found["configs"] == [{"name": "calc", "permission_policy": {"type": "always_ask"}}]
    assert toolset({}) == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("asked_tool: {name: calc}", r"asked_tool\.prompt"),
        ("heartbeat: 0", "heartbeat"),
        ("stream_start: middle", "stream_start"),
        ("promts: {}", "promts"),
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path: Path, text: str, place: str) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(text)
    with pytest.raises(DocumentError, match=place):
        read_document(path, CasProfile)
