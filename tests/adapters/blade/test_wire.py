"""What clients send is taken literally; what nobody knows is ignored."""

import pytest
from pydantic import BaseModel, ValidationError

from adapters.blade import wire


@pytest.mark.parametrize(("model", "said"), [
    (wire.NewMemory, {"content": 5}), (wire.MemorySwitch, {"disabled": "true"}), (wire.MemoryBatch, {"ids": [1]}),
    (wire.KeyName, {}), (wire.NewTask, {"title": "t", "prompt": "p"}), (wire.ReplayRequest, {"speed": 4}),
    (wire.CheckoutRequest, {"checkpoint_id": "cp_1", "position": "after"}), (wire.ReplayChange, {"status": "paused"}),
    (wire.RenameFile, {"new_name": ""}), (wire.FileContent, {"content": None}), (wire.ShareRequest, {"ttl_seconds": 0}),
])
def test_what_does_not_fit_is_refused(model: type[BaseModel], said: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        model.model_validate(said)


def test_members_nobody_knows_are_ignored() -> None:
    assert wire.KeyName.model_validate({"name": "k", "colour": "red"}).name == "k"


def test_a_query_is_text_and_read_as_what_it_means() -> None:
    query = wire.MemoryQuery.model_validate({"limit": "5", "offset": "2", "type": "experience"})
    assert (query.limit, query.offset, query.type, query.status) == (5, 2, "experience", "all")
