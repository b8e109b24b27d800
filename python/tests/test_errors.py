"""Exceptions: their classes, and no values in them."""

from __future__ import annotations

import pathlib
import traceback

import pytest

import datafusion_anonymize as an
from shared import WHO

SECRET = "4711-secret"


def test_refusals_say_what_sql_says(q1: an.Table) -> None:
    with pytest.raises(an.Refused) as caught:
        an.m_invariant(q1, m=9, **WHO)
    connection = an.connect()
    connection.register("q1", q1)
    with pytest.raises(an.Refused) as by_sql:
        connection.sql("SELECT * FROM m_invariant(q1, 9, id => patient_id, quasi => (age, zip), sensitive => disease)")
    assert str(caught.value) == str(by_sql.value) and caught.value.function == "m_invariant"
    assert type(caught.value) is an.Refused
    with pytest.raises(ValueError, match="m must be at least 2") as about:
        an.m_invariant(q1, m=1, **WHO)
    assert isinstance(about.value, an.AnonymizeError) and about.value.argument == "m"


def test_other_errors_are_of_the_base_class(tmp_path: pathlib.Path) -> None:
    connection = an.connect()
    for query, words in [
        ("SELEC 1", "SQL"),
        ("SELECT nothing FROM (VALUES (1)) AS t(x)", "nothing"),
        (f"SELECT * FROM '{tmp_path}/nothing.parquet'", "nothing.parquet"),
    ]:
        with pytest.raises(an.AnonymizeError, match=words) as caught:
            connection.sql(query)
        assert type(caught.value) is an.AnonymizeError


def test_memory_that_runs_out() -> None:
    with pytest.raises(an.AnonymizeError, match="Resources exhausted") as caught:
        an.connect(memory_limit="1MB").sql(
            "SELECT * FROM m_invariant(census(200000), 5, id => person_id, quasi => age, sensitive => occupation)"
        )
    assert type(caught.value) is an.AnonymizeError
    with pytest.raises(an.Refused, match="memory_limit"):
        an.connect(memory_limit="much")
    with pytest.raises(TypeError, match="memory_limit"):
        an.connect(memory_limit=1.5)  # type: ignore[arg-type]


def test_wrong_values_are_value_errors_and_wrong_types_are_type_errors(q1: an.Table) -> None:
    for wrong in ({"balance": "none"}, {"m": 10**6}, {"quasi": "height"}):
        with pytest.raises(ValueError) as caught:
            an.m_invariant(q1, **{"m": 2, **WHO, **wrong})
        assert isinstance(caught.value, an.Refused)
    with pytest.raises(ValueError, match="t must be a finite number"):
        an.mondrian(q1, k=2, t=float("nan"), **WHO)
    # What is no argument is no ValueError.
    with pytest.raises(an.AnonymizeError) as other:
        an.connect().sql("SELEC 1")
    assert not isinstance(other.value, ValueError)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT CAST(s AS INT) FROM t",
        "SELECT * FROM mondrian((SELECT CAST(s AS INT) AS age FROM t), 2, quasi => age)",
        "SELECT arrow_cast(s, 'Date32') FROM t",
        "SELECT s, count(*) FROM t GROUP BY CAST(s AS DOUBLE), s",
        "SELECT * FROM m_invariant(t, 2, id => s, quasi => age, sensitive => s2)",
        "SELECT 1 / (age - 1) FROM t",
        "SELECT to_timestamp(s) FROM t",
        "SELECT * FROM m_invariant(t, 9, id => age, quasi => age2, sensitive => s)",
    ],
)
def test_no_message_has_a_value(query: str) -> None:
    connection = an.connect()
    rows = ", ".join(f"('{SECRET}{i % 3}', {1 + i % 2}, {i}, '{SECRET}')" for i in range(8))
    connection.register("t", connection.sql(f"SELECT * FROM (VALUES {rows}) AS t(s, age, age2, s2)"))
    with pytest.raises(an.AnonymizeError) as caught:
        connection.sql(query)
    assert "4711" not in "".join(traceback.format_exception(caught.value))
    assert "4711" not in repr(caught.value)


def test_no_message_has_a_value_of_a_file(tmp_path: pathlib.Path) -> None:
    lines = "\n".join(f"{i},{i}" for i in range(2000))
    (tmp_path / "people.csv").write_text(f"age,zip\n{lines}\n{SECRET},7\n")
    with pytest.raises(an.AnonymizeError, match="line 2002") as caught:
        an.mondrian(tmp_path / "people.csv", k=2, quasi=["age", "zip"])
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_sql_runs_what_changes_something_at_once(tmp_path: pathlib.Path, q1: an.Table) -> None:
    connection = an.connect()
    connection.register("q1", q1)
    connection.sql(f"COPY (SELECT * FROM q1) TO '{tmp_path}/copy.parquet'")
    assert (tmp_path / "copy.parquet").exists()
    connection.sql("CREATE TABLE kept AS SELECT * FROM mondrian(q1, 3, quasi => (age, zip))")
    assert len(connection.sql("SELECT * FROM kept")) == 11
    connection.deregister("q1")
    with pytest.raises(an.AnonymizeError):
        connection.sql("SELECT * FROM q1")
