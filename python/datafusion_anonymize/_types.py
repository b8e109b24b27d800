"""Types of arguments."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, Union, runtime_checkable

if TYPE_CHECKING:
    from ._publication import Publication
    from ._table import Table


@runtime_checkable
class ArrowStream(Protocol):
    """A table of any library that knows Arrow: pandas, polars, pyarrow, a relation of DuckDB, a frame of datafusion."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@runtime_checkable
class ArrowArray(Protocol):
    """A record batch of any library that knows Arrow."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


#: A table: of any library that knows Arrow, or the path or URL of a file (Parquet, CSV, JSON) or folder.
Input: TypeAlias = Union["Table", ArrowStream, ArrowArray, str, "os.PathLike[str]"]
#: The name of a column, or the names of several.
Columns: TypeAlias = Union[str, Sequence[str]]
#: One or several tables.
Inputs: TypeAlias = Union[Input, Sequence[Input]]
#: Releases, or all those of a publication.
Releases: TypeAlias = Union[Inputs, "Publication"]
#: A long secret text, for runs that can be repeated; a number is found by trying.
Seed: TypeAlias = Union[str, int]
#: A whole number, a length of time, or the text of an interval ("1 month").
Length: TypeAlias = Union[int, timedelta, str]
#: How ranges are shown: as columns of their ends, as structs, as texts, or (pandas only) as intervals.
Ranges: TypeAlias = Literal["columns", "struct", "text", "interval"]

__all__ = ["ArrowArray", "ArrowStream", "Columns", "Input", "Inputs", "Length", "Ranges", "Releases", "Seed"]
