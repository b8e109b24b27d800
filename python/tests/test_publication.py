"""Publications."""

from __future__ import annotations

import datetime
import pathlib
import threading
import warnings

import pytest

import datafusion_anonymize as an
from shared import WHO


def hospital(place: pathlib.Path, schema: object, **more: object) -> an.Publication:
    begin = not (place / "hospital.private").exists()
    return an.publication(place / "hospital", method="m_invariant", m=2, schema=schema, begin=begin, **WHO, **more)  # type: ignore[arg-type]


def test_inserts_releases_and_audits(tmp_path: pathlib.Path, q1: an.Table, q2: an.Table) -> None:
    publication = hospital(tmp_path, q1)
    assert publication.insert(q1) == an.Inserted(rows=11, release=1)
    with pytest.warns(an.Notice, match="release 1") as told:
        assert publication.insert(q1) == an.Inserted(rows=0, release=1)
    assert told[0].filename == __file__
    assert publication.insert(q2.to_pandas()) == an.Inserted(rows=11, release=2)
    assert publication.audit().passed and not publication.audit().failed
    with pytest.raises(TypeError, match="give one of its releases"):
        an.mondrian(publication, k=2)  # type: ignore[arg-type]
    theirs = an.publication(tmp_path / "hospital")
    second = theirs.release(2)
    assert second.method == "m_invariant" and len(second) - (second.counterfeits or 0) == 11 and second.columns[:3] == ["age", "zip", "disease"]
    assert theirs.release().to_pylist() == second.to_pylist()
    assert theirs.releases()["release"] == [1, 2]
    assert theirs.estimate("SELECT count(*) AS n FROM publication")["n"] == [11]
    assert "2 releases" in repr(theirs)
    with pytest.raises(an.Refused, match="opened for reading"):
        theirs.insert(q1)
    with pytest.raises(an.Refused, match="no private view"):
        second.private


def test_who_can_be_told(tmp_path: pathlib.Path, q1: an.Table, q2: an.Table) -> None:
    publication = hospital(tmp_path, q1)
    publication.insert(q1)
    publication.insert(q2)
    found = an.disclosure(publication, background=q1, **WHO)
    assert found.max_risk is None or found.max_risk <= 1
    assert "people with at least this risk" in an.disclosure(publication.release(1), original=q1, **WHO).plot().svg[0]
    pictures = publication.plot()
    assert len(pictures.svg) == 2 and "counterfeits" in pictures.svg[0] and "<svg" in pictures._repr_html_()


def test_what_is_wrong_is_refused(tmp_path: pathlib.Path, q1: an.Table) -> None:
    with pytest.raises(an.Refused, match="there is no publication at"):
        an.publication(tmp_path / "nothing")
    with pytest.raises(an.Refused, match="give schema="):
        an.publication(tmp_path / "x", method="m_invariant", m=2, **WHO)
    with pytest.raises(an.Refused, match="no method="):
        an.publication(tmp_path / "x", m=2)
    with pytest.raises(TypeError, match="mm"):
        an.publication(tmp_path / "x", method="m_invariant", mm=2, schema=q1, **WHO)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="m must be a whole number, not str"):
        an.publication(tmp_path / "x", method="m_invariant", m="2", schema=q1, **WHO)  # type: ignore[arg-type]
    for wrong in ({"k": 2}, {"balance": "none"}, {"quasi": "age, zip"}):
        with pytest.raises(an.Refused) as caught:
            an.publication(tmp_path / "x", method="m_invariant", begin=True, schema=q1, **{"m": 2, **WHO, **wrong})  # type: ignore[arg-type]
        assert [caught.value.argument] == list(wrong)
    assert not (tmp_path / "x").exists()


def test_snapshots_of_days(tmp_path: pathlib.Path) -> None:
    law = an.connect().sql("SELECT * FROM (VALUES ('flu', 'cold', 0.1), ('cold', 'flu', 0.2)) AS t(from_value, to_value, probability)")
    people = an.connect().sql("SELECT * FROM (VALUES (1, 30, 'flu'), (2, 31, 'ulcer')) AS t(person, age, disease)")
    who = {"id": "person", "quasi": "age", "sensitive": "disease"}
    ill = an.publication(tmp_path / "ill", begin=True, method="dynamic", m=2, updates=law, schema=people, **who)  # type: ignore[arg-type]
    with pytest.raises(an.Refused, match="nobody says which day") as caught:
        ill.insert(people)
    assert caught.value.argument == "period" and not (tmp_path / "ill").exists()
    first = datetime.date(2026, 2, 28)
    assert ill.insert(people, period=first).release == 1
    # Nothing has changed, which is published all the same.
    with pytest.warns(an.Notice, match="rows of release 1, which is of 2026-02-28, and is published again"):
        assert ill.insert(people, period="2026-03-01") == an.Inserted(rows=2, release=2)
    with pytest.warns(an.Notice, match="release 1"):
        assert ill.insert(people, period=first) == an.Inserted(rows=0, release=1)
    with pytest.warns(an.Notice, match="release 2; nothing was published; both are of 2026-03-01"):
        assert ill.insert(people, period=datetime.datetime(2026, 3, 1, 12)) == an.Inserted(rows=0, release=2)
    with pytest.raises(an.Refused, match="in the order of their periods"):
        ill.insert(people, period=first - datetime.timedelta(days=1))
    with pytest.raises(an.Refused, match="nobody says which day"):
        ill.insert(people)
    assert ill.releases()["reader"] == ["knows the program"] * 2 and ill.audit().passed


def test_of_two_inserts_at_once_one_is_a_conflict(tmp_path: pathlib.Path, q1: an.Table, q2: an.Table) -> None:
    """The other one has published nothing, and can be run again."""
    seen: set[type] = set()
    for attempt in range(20):
        place = tmp_path / str(attempt)
        place.mkdir()
        both = [hospital(place, q1), hospital(place, q1)]
        start = threading.Barrier(2)

        def insert(publication: an.Publication, data: an.Table, start: threading.Barrier = start) -> None:
            start.wait()
            try:
                publication.insert(data)
            except Exception as error:
                seen.add(type(error))

        threads = [threading.Thread(target=insert, args=pair) for pair in zip(both, (q1, q2), strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if seen:
            assert len(hospital(place, q1).releases()) == 1
            again = hospital(place, q1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", an.Notice)
                again.insert(q1)
                assert again.insert(q2).release == 2 or again.insert(q1).release == 2
            assert again.audit().passed
            break
    assert seen == {an.Conflict}


def test_an_insert_tells_its_own_release(tmp_path: pathlib.Path, q1: an.Table, q2: an.Table) -> None:
    """Whatever others publish meanwhile, and have published since."""
    mine, other = hospital(tmp_path, q1, allow_repeated_snapshots=True), hospital(tmp_path, q1)
    assert mine.insert(q1).release == 1 and other.insert(q2).release == 2
    with pytest.warns(an.Notice, match="that of release 1"):
        assert other.insert(q1) == an.Inserted(rows=0, release=1)
    found: list[tuple[str, int]] = []

    def insert(name: str, data: an.Table) -> None:
        publication = hospital(tmp_path, q1, allow_repeated_snapshots=True)
        for _ in range(20):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", an.Notice)
                try:
                    inserted = publication.insert(data)
                except an.Conflict:
                    continue
            if inserted.rows:
                found.append((name, inserted.release))

    threads = [threading.Thread(target=insert, args=pair) for pair in (("q1", q1), ("q2", q2))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = [release for _, release in found]
    assert found and len(set(made)) == len(made), found
    # Where a snapshot may come back, it is published anew unless it is the newest one's.
    assert set(made) <= set(mine.releases()["release"])


def test_fractions_are_not_left_out_without_a_word(tmp_path: pathlib.Path) -> None:
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame({"person": [1, 2, 3, 4], "year": [1990, 1991, 1992, 1993], "disease": ["flu", "cold", "flu", "cold"]})
    who = {"id": "person", "quasi": "year", "sensitive": "disease"}
    publication = an.publication(tmp_path / "ward", begin=True, method="m_invariant", m=2, schema=rows, **who)  # type: ignore[arg-type]
    with pytest.raises(an.Refused, match="fractions in year") as caught:
        publication.insert(rows.assign(year=[1990.5, 1991.0, 1992.0, 1993.0]))
    assert "1990" not in str(caught.value) and len(publication.releases()) == 0
    # pandas makes floats of whole numbers where one is missing.
    later = rows.assign(year=[1990, None, 1992, 1993])
    assert str(later["year"].dtype) == "float64" and publication.insert(later).release == 1
    assert publication.release(1).to_pandas()["year_hi"].max() == 1993


def test_hierarchies_and_ledger_elsewhere(tmp_path: pathlib.Path, q1: an.Table) -> None:
    bands = an.connect().sql("""
        SELECT 'zip' AS attribute, zip * 1000 AS leaf, concat(zip / 10, '0000-', zip / 10, '9999') AS level1, '*' AS level2
        FROM generate_series(10, 39) AS t(zip)""")
    publication = hospital(tmp_path, q1, hierarchies=bands, private=tmp_path / "vault")
    publication.insert(q1)
    assert (tmp_path / "vault").exists() and not (tmp_path / "hospital.private").exists()
    assert "zip_node" in publication.release(1).to_polars().columns


def test_a_publication_begins_once(tmp_path: pathlib.Path, q1: an.Table, q2: an.Table) -> None:
    given = dict(method="m_invariant", m=2, schema=q1, **WHO)
    with pytest.raises(an.Refused, match="is the storage mounted") as caught:
        an.publication(tmp_path / "p", **given)  # type: ignore[arg-type]
    assert caught.value.argument == "begin" and not (tmp_path / "p").exists()
    assert an.publication(tmp_path / "p", begin=True, **given).insert(q1).release == 1  # type: ignore[arg-type]
    with pytest.raises(an.Refused, match="this publication has begun"):
        an.publication(tmp_path / "p", begin=True, **given).insert(q2)  # type: ignore[arg-type]
    with pytest.raises(an.Refused, match="max_missing"):
        an.publication(tmp_path / "p", max_missing=0.05, **given).insert(q2)  # type: ignore[arg-type]
    inserted = an.publication(tmp_path / "p", max_missing=0.9, **given).insert(q2)  # type: ignore[arg-type]
    assert inserted.release == 2 and len(inserted.facts) == 1 and "people were in an earlier release" in inserted.facts[0]


def test_that_people_return_is_no_warning_unless_identifiers_can_have_changed(tmp_path: pathlib.Path, q1: an.Table) -> None:
    pandas = pytest.importorskip("pandas")
    publication = hospital(tmp_path, q1)
    assert publication.insert(q1).facts == ()
    people = q1.to_pandas()
    older = people.assign(age=people["age"] + 1)
    facts = publication.insert(older).facts
    assert len(facts) == 1 and "11 people were in an earlier release, 0 are new" in facts[0]
    # Some come, as many are gone.
    moved = older.assign(patient_id=older["patient_id"].where(older.index >= 4, older["patient_id"] + 1000), age=older["age"] + 1)
    assert isinstance(moved, pandas.DataFrame)
    with pytest.warns(an.Notice, match="not written as it was"):
        assert publication.insert(moved).facts == ()


def test_columns_by_columns(tmp_path: pathlib.Path, q1: an.Table) -> None:
    ward = an.publication(tmp_path / "ward", begin=True, method="sequential", l=2, schema=q1, **WHO)
    ages = q1.to_polars().select("patient_id", "age", "disease")
    assert ward.insert(ages).rows == 11
    assert ward.insert(q1.to_polars().select("patient_id", "zip", "disease")).release == 2


def test_checked_before(tmp_path: pathlib.Path, q1: an.Table, q2: an.Table) -> None:
    publication = hospital(tmp_path, q1)
    assert publication.check([q1, q2]).columns
    assert len(publication.releases()) == 0


def test_threads_that_share_a_session_do_not_share_tables(tmp_path: pathlib.Path, people: an.Table) -> None:
    """Each thread's estimate is of its own table."""
    who = {"id": "person_id", "quasi": "age", "sensitive": "occupation"}
    publication = an.publication(tmp_path / "p", begin=True, method="mondrian", k=5, schema=people, **who)  # type: ignore[arg-type]
    publication.insert(people)
    wrong: list[int] = []

    def ask(rows: int) -> None:
        table = an.census(rows, seed=rows)
        for _ in range(20):
            found = len(an.disclosure(publication, original=table, **who))  # type: ignore[arg-type]
            if found != rows:
                wrong.append(found)

    threads = [threading.Thread(target=ask, args=(rows,)) for rows in (50, 60, 70)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
