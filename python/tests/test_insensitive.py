"""Columns that are kept as they are."""

from __future__ import annotations

import pathlib

import pytest

import datafusion_anonymize as an
from shared import CENSUS


@pytest.fixture(scope="module")
def visits() -> an.Table:
    con = an.connect()
    return con.sql("SELECT *, person_id % 7 AS weekday, concat('w', person_id % 3) AS ward FROM census(3000, 1)")


@pytest.mark.parametrize(
    ("method", "arguments"),
    [("mondrian", {"k": 5}), ("anatomy", {"l": 4}), ("muco", {"delta": 0.2}), ("muco", {"delta": "equal", "l": 4})],
)
def test_everybody_keeps_their_own(visits: an.Table, method: str, arguments: dict[str, object]) -> None:
    release = getattr(an, method)(visits, **arguments, **CENSUS, insensitive=["weekday", "ward"])
    own = {row["person_id"]: (row["weekday"], row["ward"]) for row in visits.to_pylist()}
    rows = [row for row in release.private.to_pylist() if row["person_id"] is not None]
    assert len(rows) == 3000 and all(own[row["person_id"]] == (row["weekday"], row["ward"]) for row in rows)
    assert {"weekday", "ward"} <= set(release.columns)


def test_not_where_people_are_in_several_releases(visits: an.Table, tmp_path: pathlib.Path) -> None:
    with pytest.raises(TypeError):
        an.m_invariant(visits, m=4, **CENSUS, insensitive="weekday")  # type: ignore[call-arg]
    with pytest.raises(an.Refused, match="m_invariant takes no option insensitive"):
        an.publication(tmp_path / "p", method="m_invariant", m=4, schema=visits, insensitive=["weekday"], **CENSUS)


def test_in_publications(visits: an.Table, tmp_path: pathlib.Path) -> None:
    publication = an.publication(tmp_path / "p", begin=True, method="mondrian", l=4, schema=visits, insensitive=["weekday"], **CENSUS)
    publication.insert(visits)
    assert "weekday" in publication.release().columns and publication.audit().passed
    assert publication.releases()["reader"] == ["the paper's, no insensitive value"]


def test_where_rows_are_not_of_one_person(visits: an.Table) -> None:
    with pytest.raises(TypeError):
        an.sequential_worlds(visits, l=4, **CENSUS, insensitive="weekday")  # type: ignore[call-arg]
    with pytest.raises(an.Refused, match="two roles"):
        an.mondrian(visits, k=4, quasi=["age", "weekday"], insensitive="weekday")
