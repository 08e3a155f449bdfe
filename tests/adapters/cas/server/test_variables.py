"""Environment variables: what can be said, and each rule broken one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.cas.server.session_setup import read_variables, refuse_variables
from gateway.errors import Invalid


@pytest.mark.parametrize(("given", "read"), [
    (None, {}),
    ("", {}),
    ("A=1", {"A": "1"}),
    ("A=1;B=2\nC=3\r\nD=4;", {"A": "1", "B": "2", "C": "3", "D": "4"}),
    ("EMPTY=", {"EMPTY": ""}),
    ("URL=https://x?a=b", {"URL": "https://x?a=b"}),
    (" A=1; ; _b2= x ", {"A": "1", "_b2": " x "}),
    ("A=1;A=2", {"A": "2"}),
    ({"A": "1;2\n3"}, {"A": "1;2\n3"}),
    ("A=" + "ü" * 4096, {"A": "ü" * 4096}),
    (";".join(f"V{n}=" for n in range(64)), {f"V{n}": "" for n in range(64)}),
    (";".join(f"W{n}=" + "x" * 8190 for n in range(8)), {f"W{n}": "x" * 8190 for n in range(8)}),
    ("CAW=1;QODERX=2;user_id=3", {"CAW": "1", "QODERX": "2", "user_id": "3"}),
])
def test_what_can_be_said(given: object, read: dict[str, str]) -> None:
    assert read_variables(given) == read  # type: ignore[arg-type]


BAD = [
    ("1A=x", "1A"), ("A-B=x", "A-B"), ("=x", "''"), ("ÄB=x", "ÄB"), ("A B=x", "A B"), ("A = 1", "'A '"),
    ("NOVALUE", "NOVALUE"),
    ("SERVER_ENDPOINT=x", "SERVER_ENDPOINT"), ("USER_ID=x", "USER_ID"), ("WORK_DIR=x", "WORK_DIR"),
    ("CAW_X=1", "CAW_X"), ("QODER_X=1", "QODER_X"), ("QODER_=1", "QODER_"),
    ("BIG=" + "x" * 8193, "BIG"), ("WIDE=" + "ü" * 4097, "WIDE"), ("NUL=a\0b", "NUL"),
    (";".join(f"V{n}=" for n in range(65)), "V64"),
    (";".join(f"W{n}=" + "x" * 8190 for n in range(9)), "W8"),
    ({"A B": "x"}, "A B"), ({"CAW_": "x"}, "CAW_"),
]


@pytest.mark.parametrize(("given", "named"), BAD, ids=[name for _, name in BAD])
def test_each_breach_names_the_variable(given: object, named: str) -> None:
    with pytest.raises(Invalid, match=named) as refused:
        read_variables(given)  # type: ignore[arg-type]
    assert refused.value.param == "environment_variables"


def test_a_self_hosted_environment_takes_none() -> None:
    refuse_variables({})
    with pytest.raises(Invalid, match="'A'"):
        refuse_variables({"A": "1"})


names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: not name.startswith(("CAW_", "QODER_")) and name not in ("USER_ID", "WORK_DIR"))


@given(st.dictionaries(names, st.text(st.characters(blacklist_characters=";\n\r\0", codec="utf-8"), max_size=20)))
def test_what_is_written_is_read_back(variables: dict[str, str]) -> None:
    assert read_variables(";".join(f"{name}={value}" for name, value in variables.items())) == variables
