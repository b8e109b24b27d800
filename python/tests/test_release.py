"""Releases: what comes back from a method."""

from __future__ import annotations

import json

import pytest

import datafusion_anonymize as an
from shared import CENSUS, DATA, WHO


def test_public_and_private(q1: an.Table) -> None:
    release = an.m_invariant(q1, m=2, **WHO)
    assert release.columns == ["age", "zip", "disease", "group_id", "group_size", "counterfeits"]
    assert release.private.columns == ["patient_id", *release.columns, "counterfeit", "signature", "ring"]
    assert len(release) == len(release.private)
    people = [row["patient_id"] for row in release.private.to_pylist() if not row["counterfeit"]]
    assert sorted(people) == sorted(q1["patient_id"])
    assert release.method == "m_invariant" and release.parameters["m"] == 2
    assert release.groups == len(set(release["group_id"]))
    assert release.counterfeits == sum(release.private["counterfeit"])


def test_the_public_view_is_what_sql_calls_so(people: an.Table) -> None:
    """The same seed: the public view is what is left of the private one, row by row and with what the columns say of themselves."""
    connection = an.connect()
    connection.register("people", people)
    roles = "id => person_id, quasi => (age, gender, education, birthplace), sensitive => occupation, seed => 'x'"
    for method, arguments, sql in [
        ("m_invariant", {"m": 4}, "m => 4"),
        ("mondrian", {"k": 5, "l": 3}, "k => 5, l => 3"),
        ("anatomy", {"l": 4}, "l => 4"),
        ("muco", {"delta": 0.2}, "delta => 0.2"),
        ("m_distinct", {"m": 3, "updates": "any"}, "m => 3, updates => 'any'"),
    ]:
        release = getattr(an, method)(people, **arguments, **CENSUS, seed="x")
        public = connection.sql(f"SELECT * FROM {method}(people, {sql}, {roles})")
        assert release.columns == public.columns, method
        assert release.to_arrow().equals(public.to_arrow()), method
        metadata = dict(release._native.metadata("age")), dict(public._native.metadata("age"))
        for one in metadata:
            del one["anonymize.release"]
        assert metadata[0] == metadata[1], method


def test_without_an_identifier_there_is_no_private_view(q1: an.Table) -> None:
    release = an.mondrian(q1, k=3, quasi=["age", "zip"])
    assert len(release) == 11
    with pytest.raises(an.Refused, match="no private view"):
        release.private


def test_a_chain_of_releases_remembers_all_of_them() -> None:
    """previous=second knows of first as well: who is in the first and the third only meets the same values."""
    people = an.census(600, seed=3)
    connection = an.connect()
    connection.register("people", people)
    quarter = [
        connection.sql(f"SELECT * FROM people WHERE {rows}")
        for rows in ("person_id <= 400", "person_id > 100 AND person_id <= 500", "person_id > 200 OR person_id <= 100")
    ]
    first = an.m_invariant(quarter[0], m=3, **CENSUS)
    second = an.m_invariant(quarter[1], m=3, previous=first, **CENSUS)
    third = an.m_invariant(quarter[2], m=3, previous=second, **CENSUS)
    signatures: dict[int, list[int]] = {}
    for release in (first, second, third):
        for row in release.private.to_pylist():
            if row["person_id"] is not None:
                assert signatures.setdefault(row["person_id"], row["signature"]) == row["signature"]
    listed = an.m_invariant(quarter[2], m=3, previous=[first, second], **CENSUS, seed="s")
    chained = an.m_invariant(quarter[2], m=3, previous=second, **CENSUS, seed="s")
    assert listed.to_pylist() == chained.to_pylist()
    risk = an.disclosure([first, second, third], original=people, **CENSUS, strength="group")
    assert risk.max_risk == pytest.approx(1 / 3) and risk.vulnerable == 0


def test_a_chain_of_m_distinct(people: an.Table) -> None:
    first = an.m_distinct(people, m=3, updates="any", **CENSUS)
    second = an.m_distinct(people, m=3, updates="any", previous=first, **CENSUS)
    third = an.m_distinct(people, m=3, updates="any", previous=second, **CENSUS)
    assert "signature_label" in third.private.columns
    assert an.disclosure([first, second, third], original=people, updates="any", **CENSUS, strength="group").vulnerable == 0


def test_a_chain_where_everything_changes(people: an.Table) -> None:
    pairs = "SELECT occupation AS from_value, occupation + 1 - 2 * (occupation % 2) AS to_value, 0.05 AS probability"
    law = an.connect().sql(f"{pairs} FROM (SELECT value::INT AS occupation FROM generate_series(0, 49))")
    some = {**CENSUS, "quasi": ["age", "gender"]}
    first = an.dynamic(people, m=3, updates=law, **CENSUS)
    second = an.dynamic(people, m=3, updates=law, previous=first, **some)
    third = an.dynamic(people, m=3, updates=law, previous=second, **CENSUS)
    assert "education" not in second.columns and "education" in third.columns
    assert "signature_label" in third.private.columns
    exact = an.m_distinct(people, m=3, updates=law, exact=True, **CENSUS)
    assert len(an.m_distinct(people, m=3, updates=law, exact=True, previous=exact, **CENSUS)) >= len(people)
    drawn = an.m_invariant(people, m=3, assignment="drawn", **CENSUS)
    assert len(an.m_invariant(people, m=3, assignment="drawn", previous=drawn, **CENSUS)) == len(people)


def test_previous_can_be_a_file(q1: an.Table, q2: an.Table, tmp_path) -> None:
    first = an.m_invariant(q1, m=2, **WHO)
    first.private.write_parquet(tmp_path / "q1_private.parquet")
    second = an.m_invariant(q2, m=2, previous=tmp_path / "q1_private.parquet", **WHO)
    before = {row["patient_id"]: row["signature"] for row in first.private.to_pylist()}
    for row in second.private.to_pylist():
        if row["patient_id"] in before and row["patient_id"] is not None:
            assert row["signature"] == before[row["patient_id"]]


@pytest.mark.parametrize(("method", "more"), [("dynamic", {}), ("m_distinct", {"updates": "any"}), ("m_invariant", {"assignment": "drawn"})])
def test_previous_in_their_order(people: an.Table, tmp_path, method: str, more: dict[str, object]) -> None:
    """Releases in memory, in files and both are numbered in their order, whatever the method is."""
    make = getattr(an, method)
    first = make(people, m=3, **more, **CENSUS)
    first.private.write_parquet(tmp_path / "first.parquet")
    second = make(people, m=3, previous=first, **more, **CENSUS, seed="s")
    assert make(people, m=3, previous=tmp_path / "first.parquet", **more, **CENSUS, seed="s").to_pylist() == second.to_pylist()
    third = make(people, m=3, previous=second, **more, **CENSUS, seed="s")
    listed = make(people, m=3, previous=[tmp_path / "first.parquet", second.private], **more, **CENSUS, seed="s")
    assert listed.to_pylist() == third.to_pylist()
    with pytest.raises(an.Refused, match="pass the same ones in the order 2, 1"):
        make(people, m=3, previous=[second.private, first], **more, **CENSUS)
    with pytest.raises(an.Refused):
        make(people, m=3, previous=second.private, **more, **CENSUS)


def test_previous_without_a_private_view_is_refused(q1: an.Table) -> None:
    first = an.mondrian(q1, k=2, quasi=["age", "zip"])
    with pytest.raises(an.Refused, match="previous has no private view"):
        an.m_invariant(q1, m=2, previous=first, **WHO)


def test_loss_and_estimates(q1: an.Table) -> None:
    release = an.mondrian(q1, k=3, quasi=["age", "zip"], sensitive="disease")
    assert [row["attribute"] for row in release.loss().to_pylist()] == ["age", "zip", "*"]
    assert release.loss(q1).total == release.loss().total == pytest.approx(0.367, abs=0.001)
    counts = release.estimate("SELECT disease, count(*) AS people FROM release GROUP BY disease ORDER BY disease")
    assert sum(counts["people"]) == 11
    with pytest.raises(an.AnonymizeError, match="estimated"):
        release.estimate("SELECT age FROM release")


def test_loss_of_muco_is_a_distance(people: an.Table) -> None:
    release = an.muco(people, delta=0.2, **CENSUS)
    assert any(row.get("distance") is not None for row in release.loss().to_pylist())


def test_sequential_releases(people: an.Table) -> None:
    worlds = an.sequential_worlds(people, l=4, **CENSUS)
    assert worlds.columns == ["person_id", "partners", "seals"]
    release = an.sequential_release(people, worlds=worlds, id="person_id", quasi=["age", "birthplace"], sensitive="occupation")
    assert len(release) == len(people) and release.groups is None
    assert "rows" in repr(release)


def test_reposition() -> None:
    connection = an.connect()
    visits = connection.sql("""
        SELECT * FROM (VALUES (1, DATE '2025-03-01', 21, 'flu'), (2, DATE '2025-03-01', 36, 'flu'), (3, DATE '2025-03-01', 47, 'flu'),
        (4, DATE '2025-03-01', 52, 'cough'), (5, DATE '2025-03-02', 33, 'cough'), (6, DATE '2025-03-02', 44, 'asthma'),
        (7, DATE '2025-03-02', 58, 'cough'), (8, DATE '2025-03-03', 29, 'asthma')) AS t(visit, day, age, disease)""")
    later = an.reposition(visits, l=2, time="day", window=3, sensitive="disease", finish=True)
    # One of the three with flu on the first day may have nobody to be moved to.
    assert len(later) in (7, 8) and set(later.columns) >= {"visit", "day", "age", "disease"}


def test_non_sequential_and_profile_and_advise(people: an.Table) -> None:
    release = an.non_sequential(people, l=4, quasi=["age", "gender"], sensitive="occupation")
    assert len(release) == len(people)
    assert "age" in an.profile(people)["columns"]
    advice = an.advise(an.census(1000), queries=50, seed=1, **CENSUS)
    assert "m_invariant" in advice["method"]
    accuracy = an.query_accuracy(people, an.mondrian(people, k=5, quasi=["age"], sensitive="occupation"), queries=100)
    assert len(accuracy) == 100


def test_hierarchies_are_handed_on(q1: an.Table) -> None:
    bands = an.connect().sql("""
        SELECT 'zip' AS attribute, zip * 1000 AS leaf, concat(zip / 10, '0000-', zip / 10, '9999') AS level1, '*' AS level2
        FROM generate_series(10, 39) AS t(zip)""")
    release = an.mondrian(q1, k=3, quasi=["age", "zip"], sensitive="disease", hierarchies=bands)
    assert release.loss().total is not None
    assert release.estimate("SELECT count(*) AS n FROM release WHERE zip < 20000")["n"][0] >= 0
    assert "20000-29999" in release.to_polars(ranges="text")["zip"].to_list()
    assert "zip_node" in release.to_polars(ranges="columns").columns


def test_several_sensitive_columns(people: an.Table) -> None:
    together = an.composite("occupation", "gender")
    release = an.m_invariant(people, m=3, id="person_id", quasi=["age"], sensitive=together)
    assert {"occupation", "gender"} <= set(release.columns)
    who = {"id": "person_id", "quasi": "age"}
    assert an.disclosure(release, original=people, **who, sensitive=together, strength="group").max_risk <= 0.334
    # Each by itself: one gender is too frequent for m = 3.
    each = {"id": "person_id", "quasi": "age", "sensitive": ["occupation", "gender"]}
    with pytest.raises(an.Refused, match="value of gender"):
        an.m_invariant(people, m=3, **each)


def test_what_a_release_says_of_itself_is_in_its_file(q1: an.Table, tmp_path) -> None:
    release = an.m_invariant(q1, m=2, **WHO)
    release.write_parquet(tmp_path / "public.parquet")
    count = an.estimate(tmp_path / "public.parquet", "SELECT count(*) AS n FROM release")
    assert count["n"] == [11]
    import pyarrow.parquet

    written = pyarrow.parquet.read_table(tmp_path / "public.parquet")
    assert written.column_names == release.columns
    parameters = json.loads(written.schema.field("age").metadata[b"anonymize.parameters"])
    assert parameters["m"] == 2 and "seed" not in parameters


def test_shown(q1: an.Table) -> None:
    release = an.m_invariant(q1, m=2, **WHO)
    page = release._repr_html_()
    assert "m_invariant" in page and "11 rows" in page and "groups" in page and "0 counterfeits" in page and "loss 0." in page
    assert page.count("<tr>") == 11 and "patient_id" not in page
    assert "m_invariant" in repr(release) and "[" in repr(release)
    hostile = an.connect().sql("SELECT '<script>' AS \"<b>\"")._repr_html_()
    assert "<script>" not in hostile and "<b>" not in hostile


def test_paths_are_tables(tmp_path) -> None:
    for path in (DATA / "patients_q1.parquet", str(DATA / "patients_q1.parquet")):
        assert len(an.m_invariant(path, m=2, **WHO)) == 11
    assert len(an.mondrian(DATA / "clinic_q1.csv", k=3, quasi=["age"])) == 60
    with pytest.raises(an.AnonymizeError, match=r"nothing\.parquet"):
        an.mondrian(tmp_path / "nothing.parquet", k=3, quasi=["age"])
