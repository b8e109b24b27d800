"""What tables become: every library, every way to show ranges."""

from __future__ import annotations

import csv
import datetime
import decimal

import pytest

import datafusion_anonymize as an

duckdb = pytest.importorskip("duckdb")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def mixed() -> an.Table:
    """Ranges of all kinds of columns, some of them with NULL, and of one with a hierarchy."""
    rows = 60
    table = pyarrow.table(
        {
            "age": pyarrow.array([None if i % 20 == 0 else i for i in range(rows)], pyarrow.int32()),
            "size": pyarrow.array([i / 7 for i in range(rows)], pyarrow.float64()),
            "weight": pyarrow.array([None if i % 30 == 0 else i / 3 for i in range(rows)], pyarrow.float64()),
            "day": [datetime.date(2025, 1, 1) + datetime.timedelta(i) for i in range(rows)],
            "at": pyarrow.array([datetime.datetime(2025, 1, 1, i % 24) for i in range(rows)], pyarrow.timestamp("us")),
            "cost": [decimal.Decimal(i) / 4 for i in range(rows)],
            "city": [("Bern", "Lyon", "Oslo", "Rome")[i % 4] for i in range(rows)],
            "zip": [10000 + i for i in range(rows)],
        }
    )
    zips = pyarrow.table(
        {
            "attribute": ["zip"] * rows,
            "leaf": [10000 + i for i in range(rows)],
            "level1": [f"1000{i // 10}x" for i in range(rows)],
            "level2": ["*"] * rows,
        }
    )
    return an.mondrian(table, k=12, quasi=table.column_names, hierarchies=zips, seed="s")


def test_columns(mixed: an.Table) -> None:
    names = mixed.to_polars(ranges="columns").columns
    assert names[:3] == ["age_lo", "age_hi", "age_node"] or names[:2] == ["age_lo", "age_hi"]
    assert {"size_lo", "size_hi", "size_nulls", "day_lo", "zip_lo", "zip_hi", "zip_node", "group_id"} <= set(names)
    frames = {
        "polars": mixed.to_polars(ranges="columns").to_arrow(),
        "pandas": pyarrow.Table.from_pandas(mixed.to_pandas(ranges="columns"), preserve_index=False),
        "arrow": mixed.to_arrow(ranges="columns"),
        "duckdb": mixed.to_duckdb(ranges="columns").to_arrow_table(),
    }
    for name, frame in frames.items():
        assert frame.column_names == names, name
        for column in ("age_lo", "age_hi", "city_lo", "zip_node", "size_lo", "weight_nulls"):
            assert frame[column].to_pylist() == frames["arrow"][column].to_pylist(), (name, column)


def test_whole_numbers_stay_whole_in_pandas(mixed: an.Table) -> None:
    frame = mixed.to_pandas(ranges="columns")
    assert str(frame["age_lo"].dtype) == "Int32" and frame["age_lo"].isna().any()
    assert str(frame["zip_lo"].dtype) == "int64" and str(frame["day_lo"].dtype).startswith("datetime64")
    # What structs would not allow.
    assert len(frame.drop_duplicates()) > 1 and frame.groupby(["age_lo", "age_hi"], dropna=False).size().sum() == 60


def test_structs(mixed: an.Table) -> None:
    arrow = mixed.to_arrow(ranges="struct")
    assert arrow.column_names == mixed.columns
    assert [field.name for field in arrow.schema.field("size").type][:3] == ["lo", "hi", "nulls"]
    assert isinstance(mixed.to_polars(ranges="struct").schema["size"], polars.Struct)
    assert mixed.to_pandas(ranges="struct")["zip"].iloc[0]["node"] is not None
    assert mixed.to_duckdb(ranges="struct").filter("zip.lo >= 10000").count("*").fetchall()[0][0] == 60


def test_texts(mixed: an.Table) -> None:
    structs, texts = mixed.to_arrow(ranges="struct").to_pylist(), mixed.to_polars(ranges="text").to_dicts()
    assert list(texts[0]) == mixed.columns
    for struct, text in zip(structs, texts, strict=True):
        def shown(value: object) -> str:
            return "NULL" if value is None else str(value)

        for column in ("age", "city", "day"):
            lo, hi = struct[column]["lo"], struct[column]["hi"]
            assert text[column] == (shown(lo) if lo == hi else f"[{shown(lo)}, {shown(hi)}]"), column
        assert text["zip"] == struct["zip"]["node"]
        assert ("NULL" in text["weight"]) == (struct["weight"]["nulls"] > 0)
        assert text["weight"].endswith(" or NULL") == (struct["weight"]["nulls"] > 0 and struct["weight"]["lo"] is not None)
    assert any(text["age"].startswith("[NULL, ") for text in texts)


def test_intervals(mixed: an.Table) -> None:
    with pytest.raises(an.Refused, match="ranges of age hold NULL, which intervals of pandas cannot"):
        mixed.to_pandas(ranges="interval")
    for column in ("size", "day", "at", "zip"):
        whole = an.Table(mixed._native.select([column, "group_id"]))
        frame = whole.to_pandas(ranges="interval")
        assert isinstance(frame[column].dtype, pandas.IntervalDtype) and frame[column].dtype.closed == "both"
        ends = whole.to_pandas(ranges="columns")
        assert (frame[column].array.left == ends[f"{column}_lo"].array).all()
        assert (frame[column].array.right == ends[f"{column}_hi"].array).all()
    texts = an.Table(mixed._native.select(["city"])).to_pandas(ranges="interval")
    assert texts["city"].str.startswith("[").any() or texts["city"].isin(["Bern", "Lyon", "Oslo", "Rome"]).all()
    for method in ("to_polars", "to_arrow", "to_duckdb"):
        with pytest.raises(an.Refused, match="'interval' is for to_pandas"):
            getattr(mixed, method)(ranges="interval")
    with pytest.raises(an.Refused, match="ranges must be 'columns', 'struct', 'text' or 'interval'"):
        mixed.to_polars(ranges="tuple")  # type: ignore[arg-type]


def test_csv_round_trip(mixed: an.Table, tmp_path) -> None:
    mixed.write_csv(tmp_path / "public.csv")
    back = an.connect().sql(f"SELECT * FROM '{tmp_path}/public.csv'")
    expected = mixed.to_arrow(ranges="columns")
    assert back.columns == expected.column_names and len(back) == 60
    for column in ("age_lo", "age_hi", "zip_lo", "zip_node", "city_lo", "weight_nulls", "size_hi", "group_id"):
        assert back.to_arrow()[column].to_pylist() == expected[column].to_pylist(), column
    with open(tmp_path / "public.csv", newline="") as file:
        assert next(csv.reader(file)) == expected.column_names
    mixed.write_csv(tmp_path / "texts.csv", ranges="text")
    assert an.connect().sql(f"SELECT * FROM '{tmp_path}/texts.csv'").columns == mixed.columns


def test_lists_are_refused_in_csv(people: an.Table, tmp_path) -> None:
    release = an.anatomy(people, l=4, quasi=["age"], sensitive="occupation")
    with pytest.raises(an.Refused, match="cannot hold lists"):
        release.write_csv(tmp_path / "lists.csv")
    assert not (tmp_path / "lists.csv").exists()
    release.write_parquet(tmp_path / "lists.parquet")
    assert polars.read_parquet(tmp_path / "lists.parquet").height == len(release)


def test_other_libraries_take_a_table(mixed: an.Table) -> None:
    assert polars.DataFrame(mixed).height == pyarrow.table(mixed).num_rows == 60
    connection = duckdb.connect()
    assert mixed.to_duckdb(connection).count("*").fetchall()[0][0] == 60


def test_texts_are_plain_ones(tmp_path) -> None:
    """Files are read as views of texts, which pandas and older libraries do not know."""
    table = pyarrow.table({"city": ["a", "b"] * 4, "ill": ["x", "y"] * 4})
    from pyarrow import parquet

    parquet.write_table(table, tmp_path / "t.parquet")
    release = an.mondrian(tmp_path / "t.parquet", k=2, quasi="city", sensitive="ill")
    assert release.to_arrow().schema.field("ill").type == pyarrow.string()
    assert release.to_arrow().schema.field("city").type.field("lo").type == pyarrow.string()


def test_columns_that_would_be_there_twice() -> None:
    table = pyarrow.table({"age": [1, 2, 3, 4], "age_lo": ["x", "y", "x", "y"]})
    release = an.mondrian(table, k=2, quasi="age", sensitive="age_lo")
    with pytest.raises(an.Refused, match="age_lo is there twice"):
        release.to_polars(ranges="columns")


def test_python_values(mixed: an.Table) -> None:
    row = mixed.to_pylist()[0]
    assert isinstance(row["zip"]["lo"], int) and isinstance(row["size"]["lo"], float) and isinstance(row["day"]["lo"], str)
    values = an.connect().sql("SELECT true AS a, [1, NULL] AS b, CAST(18446744073709551615 AS BIGINT UNSIGNED) AS c, NULL AS d").to_pylist()
    assert values == [{"a": True, "b": [1, None], "c": 18446744073709551615, "d": None}]
