"""ZenFlux profiles: what they say can be asked for, what they do not say is not testable."""

from pathlib import Path

import pytest

from conformance.kit.documents import DocumentError, read_document
from conformance.kit.expect import NotTestable
from conformance.kit.suite import Suite
from conformance.zenflux.profile import ZenfluxProfile


def test_the_default_profile_names_every_situation(zenflux: Suite) -> None:
    profile = zenflux.read_profile()
    assert isinstance(profile, ZenfluxProfile)
    assert all(profile.prompts.model_dump().values())
    assert (profile.heartbeat, profile.management, len(profile.annotations)) == (30, True, 6)


def test_what_is_missing_is_not_testable() -> None:
    profile = ZenfluxProfile()
    with pytest.raises(NotTestable, match=r"no entry `prompts\.text`"):
        profile.prompt("text")
    with pytest.raises(NotTestable, match="`search`"):
        profile.needs_annotation("search")
    ZenfluxProfile(annotations=("search",)).needs_annotation("search")


@pytest.mark.parametrize(
    ("text", "place"), [("heartbeat: 0", "heartbeat"), ("prompts: {sing: x}", r"prompts\.sing"), ("agnt: x", "agnt")]
)
def test_mistakes_are_named_with_their_place(tmp_path: Path, text: str, place: str) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(text)
    with pytest.raises(DocumentError, match=place):
        read_document(path, ZenfluxProfile)
