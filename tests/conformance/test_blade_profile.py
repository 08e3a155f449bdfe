"""Blade profiles: what they say can be asked for, what they do not say is not testable."""

from pathlib import Path

import pytest

from conformance.blade.profile import BladeProfile
from conformance.kit.documents import DocumentError, read_document
from conformance.kit.expect import NotTestable
from conformance.kit.suite import Suite


def test_the_default_profile_names_every_situation(blade: Suite) -> None:
    profile = blade.read_profile()
    assert isinstance(profile, BladeProfile)
    assert all(profile.prompts.model_dump().values())
    assert "{session_id}" in profile.rest_address
    assert profile.schema_wanted["type"] == "object"


def test_what_is_missing_is_not_testable() -> None:
    profile = BladeProfile()
    for ask in (lambda: profile.prompt("text"), lambda: profile.rest_address, lambda: profile.schema_wanted):
        with pytest.raises(NotTestable, match="the profile has no entry"):
            ask()


@pytest.mark.parametrize(("text", "place"), [("prompts: {txt: Hello}", r"prompts\.txt"), ("promts: {}", "promts")])
def test_mistakes_are_named_with_their_place(tmp_path: Path, text: str, place: str) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(text)
    with pytest.raises(DocumentError, match=place):
        read_document(path, BladeProfile)


def test_what_can_be_brought_about_is_asked_for_and_the_rest_left_out() -> None:
    profile = BladeProfile.model_validate({"prompts": {"text": "Hello", "ui": "/ui"}})
    assert profile.having(("ui", "plan", "text")) == ["ui", "text"]
