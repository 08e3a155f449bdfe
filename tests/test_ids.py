"""Ids are minted in one place; tests can count."""

from gateway.ids import first_duplicate, make_mint, random_id, request_id


def test_ids_count_up_from_a_stem() -> None:
    mint = make_mint("s")
    assert [mint("msg"), mint("blk"), mint("msg")] == ["msg_s1", "blk_s2", "msg_s3"]


def test_two_processes_do_not_share_ids() -> None:
    assert make_mint()("msg") != make_mint()("msg")


def test_nobody_can_count_up_to_a_session() -> None:
    made = {random_id("sess") for _ in range(1000)}
    assert len(made) == 1000
    assert all(one.startswith("sess_") and len(one) == 29 for one in made)


def test_what_stands_there_a_second_time_is_found() -> None:
    assert first_duplicate(iter(["a", "b", "c", "b", "a"])) == "b"
    assert first_duplicate(["a", "b"]) is None


def test_no_two_requests_have_one_id() -> None:
    made = {request_id() for _ in range(1000)}
    assert len(made) == 1000
    assert all(one.startswith("req_") and len(one) == 28 for one in made)
