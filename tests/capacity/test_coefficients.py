"""The measured costs are complete, and what they say of a load is their sum."""

from pathlib import Path

import msgspec
import pytest

from gateway.capacity import COST_NAMES, FILE, CpuCosts, cost_of, read_coefficients


def test_every_cost_has_a_name_in_words() -> None:
    assert tuple(COST_NAMES) == CpuCosts.__struct_fields__


def test_the_file_of_the_package_has_every_cost_and_loads_that_the_model_was_checked_with() -> None:
    found = read_coefficients()
    assert found.cpu[0].primaries == 1
    assert any(one.is_check for one in found.loads)
    assert found.cpu[0].replica.delta > 0 < found.redis_memory.delta
    largest = max(size for one in found.fleet for size in one.by_replicas)
    assert largest == 50


@pytest.mark.parametrize(("name", "other"), [("delta_read", "delta_write"), ("process", "proces")])
def test_a_file_with_another_cost_is_refused(name: str, other: str, tmp_path: Path) -> None:
    text = FILE.read_text(encoding="utf-8").replace(f'"{name}"', f'"{other}"', 1)
    (tmp_path / "coefficients.json").write_text(text)
    with pytest.raises(msgspec.ValidationError, match=f"{name}|{other}"):
        read_coefficients(tmp_path / "coefficients.json")


def test_the_cost_of_a_load_is_a_sum() -> None:
    costs = msgspec.convert(dict.fromkeys(COST_NAMES, 100), CpuCosts)
    assert cost_of(costs, {"turn": 2, "delta": 5_000}) == pytest.approx(0.5002)


def test_a_cluster_has_the_costs_of_the_largest_that_was_measured() -> None:
    found = read_coefficients()
    one = found.cpu[0]
    three = msgspec.structs.replace(one, primaries=3)
    both = msgspec.structs.replace(found, cpu=[three, one])
    assert [both.cpu_with(count).primaries for count in (1, 3, 12)] == [1, 3, 3]
