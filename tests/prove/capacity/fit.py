"""Costs that are not negative and explain measured totals best, by relative error."""

from collections.abc import Mapping, Sequence

Counts = Mapping[str, float]


def fitted(samples: Sequence[tuple[Counts, float]], names: Sequence[str]) -> dict[str, float]:
    """The cost of each name, so that counts times costs are near the totals; what would be negative costs nothing."""
    left = [name for name in names if any(counts.get(name) for counts, _ in samples)]
    while True:
        costs = dict(zip(left, _least_squares(samples, left), strict=True))
        wrong = [name for name in left if costs[name] < 0]
        if not wrong:
            return {name: costs.get(name, 0.0) for name in names}
        left.remove(min(wrong, key=lambda name: costs[name] * max(counts.get(name, 0.0) for counts, _ in samples)))


def _least_squares(samples: Sequence[tuple[Counts, float]], names: Sequence[str]) -> list[float]:
    """By the normal equations, with every sample divided by its total: a tenth too much weighs the same anywhere."""
    rows = [[counts.get(name, 0.0) / total for name in names] for counts, total in samples]
    sizes = [max(row[place] for row in rows) for place in range(len(names))]
    rows = [[value / size for value, size in zip(row, sizes, strict=True)] for row in rows]
    square = [[sum(row[a] * row[b] for row in rows) for b in range(len(names))] for a in range(len(names))]
    right = [sum(row[place] for row in rows) for place in range(len(names))]
    return [value / size for value, size in zip(_solved(square, right), sizes, strict=True)]


def _solved(square: list[list[float]], right: list[float]) -> list[float]:
    """The solution of a system of linear equations, by elimination; raises `ValueError` if there is not one."""
    rows, size = [[*row, value] for row, value in zip(square, right, strict=True)], len(right)
    for place in range(size):
        best = max(range(place, size), key=lambda number: abs(rows[number][place]))
        if abs(rows[best][place]) < 1e-12:
            raise ValueError("the loads do not tell the costs apart")
        rows[place], rows[best] = rows[best], rows[place]
        rows[place] = [value / rows[place][place] for value in rows[place]]
        for number in range(size):
            if number != place:
                share = rows[number][place]
                rows[number] = [value - share * other for value, other in zip(rows[number], rows[place], strict=True)]
    return [row[-1] for row in rows]
