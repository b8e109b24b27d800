"""Types of arguments."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, Protocol, TypeAlias


class ArrowStream(Protocol):
    """Table of any library that knows Arrow: of this one, pandas, polars, pyarrow, a relation of DuckDB, a frame of datafusion."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class ArrowArray(Protocol):
    """Record batch of any library that knows Arrow."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


#: The path of a file, or a URL.
Place: TypeAlias = str | os.PathLike[str]
#: A table: of any library that knows Arrow, or the path or URL of a file (Parquet, CSV, JSON) or folder.
Input: TypeAlias = ArrowStream | ArrowArray | Place
#: The name of a column, or the names of several.
Columns: TypeAlias = str | Sequence[str]
#: One or several tables.
Inputs: TypeAlias = Input | Sequence[Input]
#: A long secret text, for runs that can be repeated; a number is found by trying.
Seed: TypeAlias = str | int
#: A whole number, a length of time, or the text of an interval ("1 month").
Length: TypeAlias = int | timedelta | str
#: How ranges are shown: as columns of their ends, as structs, as texts, or (pandas only) as intervals.
Ranges: TypeAlias = Literal["columns", "struct", "text", "interval"]
