"""Profiles: what they say can be asked for, what they do not say is not testable."""

from pathlib import Path

import pytest

from conformance.aap.profile import AapProfile
from conformance.kit.documents import DocumentError, read_document
from conformance.kit.expect import NotTestable
from conformance.kit.suite import Suite


def test_the_default_profile_names_every_situation(aap: Suite) -> None:
    profile = aap.read_profile()
    assert isinstance(profile, AapProfile)
    assert all(profile.prompts.model_dump().values())
    assert profile.client_spec["name"]
    assert profile.server_tool("first_tool").name != profile.server_tool("second_tool").name


def test_what_is_missing_is_not_testable() -> None:
    profile = AapProfile()
    for ask in (lambda: profile.prompt("text"), lambda: profile.server_tool("first_tool"), lambda: profile.client_spec):
        with pytest.raises(NotTestable, match="the profile has no entry"):
            ask()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("first_tool: {name: clock}", r"first_tool\.prompt"),
        ("images: {http: 'ftp://x'}", r"images\.http"),
        ("listing: {sessions: 1}", r"listing\.sessions"),
        ("promts: {}", "promts"),
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path: Path, text: str, place: str) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(text)
    with pytest.raises(DocumentError, match=place):
        read_document(path, AapProfile)
