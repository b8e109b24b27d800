"""Tables of other libraries."""

from __future__ import annotations

import datetime

import pytest

import datafusion_anonymize as an

duckdb = pytest.importorskip("duckdb")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

ROWS = {
    "who": list(range(40)),
    "age": [20 + i % 20 for i in range(40)],
    "city": [("Rome", "Oslo", "Bern", "Lyon")[i % 4] for i in range(40)],
    "day": [datetime.date(2025, 1, 1 + i % 25) for i in range(40)],
    "ill": [("flu", "cough", "asthma")[i % 3] for i in range(40)],
}
ROLES = {"id": "who", "quasi": ["age", "city", "day"], "sensitive": "ill", "seed": "s"}


def tables() -> dict[str, object]:
    arrow = pyarrow.table(ROWS)
    return {
        "pyarrow": arrow,
        "record batch": arrow.combine_chunks().to_batches()[0],
        "reader": arrow.to_reader(max_chunksize=7),
        "pandas": pandas.DataFrame(ROWS),
        "pandas with dates": pandas.DataFrame(ROWS).astype({"day": "datetime64[s]"}),
        "polars": polars.DataFrame(ROWS),
        "duckdb": duckdb.from_arrow(arrow),
        "dictionaries": arrow.set_column(2, "city", arrow.column("city").dictionary_encode()),
        "ours": an.Table(an._native.Table.read(arrow)),
    }


@pytest.mark.parametrize("kind", list(tables()))
def test_every_library(kind: str) -> None:
    release = an.m_invariant(tables()[kind], m=2, **ROLES)
    expected = an.m_invariant(pyarrow.table(ROWS), m=2, **ROLES)
    assert sorted(release.private["who"]) == sorted(ROWS["who"])
    if "dates" not in kind:
        assert release.to_polars().equals(expected.to_polars())


@pytest.mark.parametrize("make", ["pandas", "polars", "pyarrow"])
def test_categories_keep_their_order(make: str) -> None:
    """An ordered category generalizes to neighbours in its order, not in that of the alphabet."""
    order = ["low", "mid", "high", "top"]
    grade = [order[i // 10] for i in range(40)]
    if make == "pandas":
        table: object = pandas.DataFrame({"grade": pandas.Categorical(grade, categories=order, ordered=True)})
    elif make == "polars":
        table = polars.DataFrame({"grade": polars.Series(grade, dtype=polars.Enum(order))})
    else:
        indices = pyarrow.array([order.index(one) for one in grade], pyarrow.int8())
        table = pyarrow.table({"grade": pyarrow.DictionaryArray.from_arrays(indices, order, ordered=True)})
    release = an.mondrian(table, k=20, quasi="grade")
    assert set(release.to_polars(ranges="text")["grade"]) == {"[low, mid]", "[high, top]"}


def test_a_reader_is_read_once() -> None:
    release = an.mondrian(pyarrow.table(ROWS).to_reader(), k=4, quasi=["age"], sensitive="ill")
    assert release.loss().total is not None


def test_what_is_no_table() -> None:
    for value, words in [
        ([1, 2], "expected a table of pandas, polars"),
        (polars.DataFrame(ROWS).lazy(), r"collect\(\) it first"),
        (17, "expected a table"),
    ]:
        with pytest.raises(TypeError, match=words):
            an.mondrian(value, k=2, quasi="age")  # type: ignore[arg-type]


def test_columns_of_several_types_are_named_without_values() -> None:
    frame = pandas.DataFrame({"age": [1, 2], "mixed": ["4711-secret", 3]})
    with pytest.raises(an.Refused, match="mixed has values of several types") as caught:
        an.mondrian(frame, k=2, quasi="age")
    error: BaseException | None = caught.value
    while error is not None:
        assert "4711" not in str(error)
        error = error.__cause__ or error.__context__


def test_streams_that_fail_say_no_values() -> None:
    relation = duckdb.sql("SELECT i AS age, CAST(CASE WHEN i = 3000 THEN '4711-secret' ELSE '1' END AS INT) AS x FROM range(5000) t(i)")
    with pytest.raises(an.AnonymizeError) as caught:
        an.mondrian(relation, k=2, quasi="age")
    assert "4711" not in str(caught.value) and caught.value.__cause__ is None and caught.value.__context__ is None


def test_wrong_arguments_are_type_errors(people: an.Table) -> None:
    for arguments, words in [
        ({"m": "5"}, "m must be a whole number"),
        ({"m": 2.5}, "m must be a whole number"),
        ({"m": 2, "quasi": 5}, "quasi must be the name of a column or a list"),
        ({"m": 2, "seed": 1.5}, "seed must be a whole number"),
    ]:
        with pytest.raises(TypeError, match=words):
            an.m_invariant(people, **{"quasi": "age", "id": "person_id", "sensitive": "occupation", **arguments})


def test_names_are_quoted() -> None:
    table = pyarrow.table({'a "b" c': [1, 2, 3, 4], "SELECT": ["x", "y", "x", "y"], "Ünï": [1, 2, 3, 4]})
    release = an.m_invariant(table, m=2, id="Ünï", quasi='a "b" c', sensitive="SELECT")
    assert release.columns[:2] == ['a "b" c', "SELECT"]
    assert list(release.to_polars().columns)[:2] == ['a "b" c_lo', 'a "b" c_hi']
    assert len(release.to_polars(ranges="text")) == 4


def test_readers_written_in_python() -> None:
    """Their code runs on another thread than the one that waits, which must not hold Python's lock."""
    batches = pyarrow.table(ROWS).to_batches(max_chunksize=5)
    schema = batches[0].schema
    reader = pyarrow.RecordBatchReader.from_batches(schema, (batch for batch in batches))
    assert len(an.mondrian(reader, k=4, quasi="age")) == 40

    def failing():  # type: ignore[no-untyped-def]
        yield batches[0]
        raise ValueError("4711-secret")

    with pytest.raises(an.AnonymizeError) as caught:
        an.mondrian(pyarrow.RecordBatchReader.from_batches(schema, failing()), k=4, quasi="age")
    assert "4711" not in str(caught.value)


def test_urls_are_tables() -> None:
    import functools
    import http.server
    import threading

    from shared import DATA

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=DATA))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        release = an.mondrian(f"http://127.0.0.1:{server.server_port}/clinic_q1.csv", k=3, quasi=["age"])
        assert len(release) == 60
    finally:
        server.shutdown()
        server.server_close()


def test_years_stay_whole_beside_a_missing_one() -> None:
    """pandas itself makes floats of them; columns with a fraction, or without a missing value, stay what they are."""
    years = [1990.0 + i % 20 for i in range(40)]
    halves = [None, *(i / 2 for i in range(1, 40))]
    frame = pandas.DataFrame({"year": [None, *years[1:]], "size": halves, "exact": years, "none": [float("nan")] * 40})
    kinds = {name: kind for name, kind, _ in an.Table(an._native.Table.read(an._input._whole(frame)))._native.columns()}
    assert kinds["year"] == "Int64" and kinds["size"] == kinds["exact"] == "Float64"
    assert str(frame["year"].dtype) == "float64", "the caller's table is not changed"
    release = an.mondrian(frame[["year"]], k=5, quasi="year", seed="s")
    assert all(isinstance(row["year"]["hi"], int) for row in release.to_pylist())
    assert str(release.to_pandas()["year_lo"].dtype) in ("Int64", "int64")


def test_statements_and_errors_name_the_argument() -> None:
    table = pyarrow.table(ROWS)
    with pytest.raises(an.AnonymizeError) as caught:
        an.estimate(an.mondrian(table, k=2, quasi="age"), "SELECT nothing FROM release")
    assert "__table" not in str(caught.value)
    with an._sql.Query() as query:
        written = query.arguments("disclosure", {"releases": [table, table], "original": table})
    assert written == 'releases => ("releases_data", "releases_data_2"), original => "original_data"'
