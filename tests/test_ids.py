"""Ids are minted in one place; tests can count."""

from gateway.ids import minting, repeated, unguessable


def test_ids_count_up_from_a_stem() -> None:
    mint = minting("s")
    assert [mint("msg"), mint("blk"), mint("msg")] == ["msg_s1", "blk_s2", "msg_s3"]


def test_two_processes_do_not_share_ids() -> None:
    assert minting()("msg") != minting()("msg")


def test_nobody_can_count_up_to_a_session() -> None:
    made = {unguessable("sess") for _ in range(1000)}
    assert len(made) == 1000
    assert all(one.startswith("sess_") and len(one) == 29 for one in made)


def test_what_stands_there_a_second_time_is_found() -> None:
    assert repeated(iter(["a", "b", "c", "b", "a"])) == "b"
    assert repeated(["a", "b"]) is None
