"""Tables of other libraries, read without saying what is in them."""

from __future__ import annotations

import os
from typing import Any

from . import _native
from ._errors import AnonymizeError, Refused

_KNOWN = "a table of pandas, polars, pyarrow, DuckDB or datafusion, or the path of a file"


def read(value: object) -> _native.Table:
    """The table that an object is.

    Errors of other libraries show values ("could not convert 'flu'"), so none is passed on, nor kept as a cause.
    """
    inner = getattr(value, "_native", None)
    if isinstance(inner, _native.Table):
        return inner
    if not (hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")):
        raise TypeError(_unknown(value))
    missing: str | None = None
    try:
        return _native.Table.read(_whole(value))
    except AnonymizeError:
        raise
    except ImportError as error:
        missing = error.name or "pyarrow"
    except Exception:
        pass
    if missing is not None:
        kind = type(value).__module__.split(".")[0]
        raise ModuleNotFoundError(f"tables of {kind} are read with {missing}: pip install {missing}", name=missing)
    raise Refused(f"the table cannot be read as Arrow columns{_which(value)}")


def _whole(value: object) -> object:
    """The table; of pandas, with whole numbers where all that are there are whole and some are missing, for pandas itself makes floats of these."""
    if type(value).__module__.split(".")[0] != "pandas" or not hasattr(value, "dtypes"):
        return value
    try:
        frame: Any = value
        whole: dict[int, Any] = {}
        for place, kind in enumerate(frame.dtypes):
            if not type(kind).__module__.startswith("numpy") or kind.kind != "f":
                continue
            column = frame.iloc[:, place]
            there = column.dropna()
            some = 0 < len(there) < len(column)
            if some and bool((there % 1 == 0).all()) and bool((there.abs() < 2**53).all()):
                whole[place] = column.astype("Int64")
        if not whole:
            return value
        frame = frame.copy(deep=False)
        for place, column in whole.items():
            frame.isetitem(place, column)
        return frame
    except Exception:
        return value


def _which(value: object) -> str:
    """The columns of a pandas table that have no one type."""
    names: list[str] = []
    try:
        frame: Any = value
        for place, name in enumerate(frame.columns):
            if not isinstance(name, str):
                return ": a column has a name that is no text; rename the columns"
            try:
                frame.iloc[:, [place]].__arrow_c_stream__()
            except Exception:
                names.append(name)
    except Exception:
        return ""
    if not names:
        return ""
    return f": {', '.join(names)} {'have' if len(names) > 1 else 'has'} values of several types; make them one, as by astype(str)"


def _unknown(value: object) -> str:
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if hasattr(value, "collect"):
        return f"expected {_KNOWN}, not {kind}; collect() it first"
    return f"expected {_KNOWN}, not {kind}"


def is_path(value: object) -> bool:
    """Whether an object names a file or folder."""
    return isinstance(value, (str, os.PathLike))
