"""Tables that have been computed, and their conversions."""

from __future__ import annotations

import html
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from . import _native
from ._errors import Refused
from ._input import path as path_of
from ._sql import Query, identifier, text
from ._types import Place, Ranges

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow

#: Rows that are shown.
_SHOWN = 10


class Table:
    """Holds rows that have been computed once. Shown, converted and written, they are always the same.

    Any library that knows Arrow can take one: ``polars.DataFrame(table)``, ``pyarrow.table(table)``.
    """

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any:
        return self._native.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return self._native.num_rows

    def __getitem__(self, column: str) -> list[Any]:
        """Returns the values of a column."""
        if column not in self.columns:
            raise KeyError(f"{column}; there are {', '.join(self.columns)}")
        return [row[column] for row in self._native.select([column]).to_pylist()]

    def __reduce__(self) -> Any:
        raise TypeError("tables are not pickled: hand on what to_arrow() returns, or a file")

    @property
    def columns(self) -> list[str]:
        """Returns the names of the columns."""
        return self._native.column_names

    def to_pylist(self) -> list[dict[str, Any]]:
        """Returns the rows as dictionaries. Needs no other library; dates, times and decimals are texts."""
        return self._native.to_pylist()

    def to_arrow(self, ranges: Ranges = "struct") -> pyarrow.Table:
        """Returns the rows as a pyarrow.Table."""
        return cast("pyarrow.Table", _imported("pyarrow", "to_arrow").table(self._shaped(ranges)))

    def to_polars(self, ranges: Ranges = "columns") -> polars.DataFrame:
        """Returns the rows as a polars.DataFrame."""
        return cast("polars.DataFrame", _imported("polars", "to_polars").DataFrame(self._shaped(ranges)))

    def to_pandas(self, ranges: Ranges = "columns") -> pandas.DataFrame:
        """Returns the rows as a pandas.DataFrame. Whole numbers stay whole where some are missing.

        With ``ranges="interval"``, ranges of numbers, dates and times are intervals closed on both sides; those of texts are texts.
        """
        pd = _imported("pandas", "to_pandas")
        pa = _imported("pyarrow", "to_pandas")
        if ranges == "interval":
            return cast("pandas.DataFrame", self._intervals(pd, pa))
        return cast("pandas.DataFrame", _frame(pd, pa.table(self._shaped(ranges))))

    def to_duckdb(
        self, connection: duckdb.DuckDBPyConnection | None = None, ranges: Ranges = "struct"
    ) -> duckdb.DuckDBPyRelation:
        """Returns the rows as a relation of DuckDB, of this connection or of the default one."""
        of: Any = _imported("duckdb", "to_duckdb") if connection is None else connection
        arrow = _imported("pyarrow", "to_duckdb").table(self._shaped(ranges))
        return cast("duckdb.DuckDBPyRelation", of.from_arrow(arrow))

    def write_parquet(self, path: Place, ranges: Ranges = "struct") -> None:
        """Writes a Parquet file. It says how it was made if the ranges are structs."""
        self._write(path, ranges, "PARQUET")

    def write_csv(self, path: Place, ranges: Ranges = "columns") -> None:
        """Writes a CSV file with a header. A CSV file has no structs."""
        self._write(path, "columns" if ranges == "struct" else ranges, "CSV")

    def _write(self, path: Place, ranges: Ranges, form: str) -> None:
        target = path_of(path, "path")
        lists = [name for name, kind, _ in self._native.columns() if kind.startswith("List")]
        if form == "CSV" and lists:
            raise Refused(f"a CSV file cannot hold lists, as {lists[0]} has; write_parquet can")
        options = " OPTIONS ('format.has_header' 'true')" if form == "CSV" else ""
        Table(self._shaped(ranges))._asked(f"COPY (SELECT * FROM this) TO {text(target)} STORED AS {form}{options}", "writing")

    def _asked(self, query: str, what: str = "") -> _native.Table:
        """Runs a query of this table, which it calls ``this``."""
        with Query() as asked:
            asked.session.register("this", self._native)
            return asked.run(query, what)

    def _range_columns(self) -> dict[str, list[str]]:
        """Returns the columns that are ranges, with the fields of their structs."""
        return {name: parts for name, _, parts in self._native.columns() if parts[:2] == ["lo", "hi"]}

    def _shaped(self, ranges: Ranges) -> _native.Table:
        if ranges not in ("columns", "struct", "text", "interval"):
            raise Refused(f"ranges must be 'columns', 'struct', 'text' or 'interval', not {ranges!r}")
        if ranges == "interval":
            raise Refused("ranges='interval' is for to_pandas; there are 'columns', 'struct' and 'text'")
        of = self._range_columns()
        if ranges == "struct" or not of:
            return self._native
        if ranges == "columns":
            return self._asked("SELECT * FROM flat(this)")
        shown = (_as_text(name, of[name]) if name in of else identifier(name) for name in self.columns)
        return self._asked(f"SELECT {', '.join(shown)} FROM this")

    def _intervals(self, pd: Any, pa: Any) -> Any:
        whole = pa.table(self._native)
        frame = _frame(pd, pa.table(self._shaped("text")))
        for name, parts in self._range_columns().items():
            column = whole.column(name).combine_chunks()
            lo, hi = column.field("lo"), column.field("hi")
            if pa.types.is_string(lo.type) or pa.types.is_large_string(lo.type):
                continue
            nulls = sum(column.field("nulls").to_pylist()) if "nulls" in parts else 0
            if lo.null_count or hi.null_count or nulls:
                raise Refused(
                    f"ranges of {name} hold NULL, which intervals of pandas cannot; take ranges='columns' or ranges='text'"
                )
            ends = [end.to_pandas(date_as_object=False) for end in (lo, hi)]
            try:
                intervals = pd.arrays.IntervalArray.from_arrays(*ends, closed="both")
            except (TypeError, ValueError):
                continue
            frame[name] = pd.Series(intervals, index=frame.index)
        return frame

    def __repr__(self) -> str:
        return "\n".join([*self._summary(), _grid(self.columns, self._first())])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        rows = ("".join(f"<td>{html.escape(value)}</td>" for value in row) for row in self._first())
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        summary = "".join(f"<p>{html.escape(line)}</p>" for line in self._summary())
        more = len(self) - _SHOWN
        rest = f"<p>{more:,} more rows</p>" if more > 0 else ""
        return f"<div>{summary}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}</div>"

    def _summary(self) -> list[str]:
        """Returns the lines above the rows."""
        return [f"{len(self):,} rows"]

    def _first(self) -> list[list[str]]:
        return Table(self._native.head(_SHOWN))._shaped("text").texts()


def _as_text(name: str, parts: Sequence[str]) -> str:
    """Writes a range as a text in SQL: one value, or both ends; NULL is a value that comes first."""
    part = {part: f"get_field({identifier(name)}, {text(part)})" for part in parts}
    lo, hi = (f"coalesce(CAST({part[end]} AS VARCHAR), 'NULL')" for end in ("lo", "hi"))
    shown = f"CASE WHEN {part['lo']} IS NOT DISTINCT FROM {part['hi']} THEN {lo} ELSE concat('[', {lo}, ', ', {hi}, ']') END"
    if "nulls" in parts:
        null = f"{part['nulls']} > 0 AND {part['hi']} IS NOT NULL AND {part['lo']} IS NOT NULL"
        shown = f"CASE WHEN {null} THEN concat({shown}, ' or NULL') ELSE {shown} END"
    if "node" in parts:
        shown = f"coalesce({part['node']}, {shown})"
    return f"{shown} AS {identifier(name)}"


def _frame(pd: Any, table: Any) -> Any:
    """Returns a frame of pandas, in which no whole number becomes 23.0 because another is missing."""
    frame = table.to_pandas(date_as_object=False)
    nullable = {
        **{f"{sign}int{bits}": f"{letter}nt{bits}" for sign, letter in (("", "I"), ("u", "UI")) for bits in (8, 16, 32, 64)},
        "bool": "boolean",
    }
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = nullable.get(str(column.type))
        if kind is not None and column.null_count:
            frame[name] = pd.array(column.to_pylist(), dtype=kind)
    return frame


def _grid(names: list[str], rows: list[list[str]]) -> str:
    lines = [names, *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(names))]
    return "\n".join("  ".join(value.ljust(width) for value, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def _imported(name: str, method: str) -> Any:
    """Imports a library that is there or not."""
    try:
        return import_module(name)
    except ImportError:
        pass
    raise ModuleNotFoundError(f"{method} needs {name}: pip install {name}", name=name)
