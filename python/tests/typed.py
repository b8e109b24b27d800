"""What users write: mypy --strict reads it, nobody runs it."""

from __future__ import annotations

from typing import Any

import datafusion_anonymize as an


def releases(people: Any, path: str) -> list[an.Release]:
    first = an.m_invariant(people, m=2, id="a", quasi=["b"], sensitive="c", on_ineligible="withhold", seed="s")
    second = an.m_invariant(path, m=2, previous=[first], quasi="b")
    groups: int | None = first.groups
    total: float | None = second.loss(people).total
    rows: list[dict[str, Any]] = first.to_pylist()
    first.to_polars(ranges="text").height
    first.write_csv(path)
    found = an.disclosure([first, second], background=people, strength="group")
    chart: an.Chart = found.plot()
    opened = an.publication(path, method="reposition", inner="anatomy", l=2, time="day", window=7, schema=people, begin=True, max_missing=0.2)
    inserted: int = opened.insert(first).rows
    table: an.Table = an.connect(memory_limit="1GB").sql("SELECT 1")
    print(groups, total, rows, chart, inserted, table)
    return [first, second]


def wrong() -> None:
    an.m_invariant("p", m="two")  # type: ignore[arg-type]
    an.m_invariant("p", m=2, balance="none")  # type: ignore[arg-type]
    an.mondrian("p", kk=2)  # type: ignore[call-arg]
    an.publication("p", method="mondrain", k=2)  # type: ignore[arg-type]
    an.publication("p", method="mondrian", kk=2)  # type: ignore[call-arg]
    an.publication("p", method="mondrian", k="2")  # type: ignore[arg-type]
    an.publication("p", method="m_invariant", balance="none")  # type: ignore[arg-type]
    an.m_invariant(2, m=2)  # type: ignore[arg-type]
    an.census(10).to_polars(ranges="tuples")  # type: ignore[arg-type]
