"""Tables of other libraries, and paths, as arguments."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeGuard

from . import _native
from ._errors import AnonymizeError, Refused

_KNOWN = "a table of pandas, polars, pyarrow, DuckDB or datafusion, or the path of a file"


def read(value: object) -> _native.Table:
    """Reads a table of any library.

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
    """Returns the table. Columns of pandas whose values are whole, some of them missing, become whole numbers; pandas makes floats of them."""
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
    """Names the columns of a pandas table that have several types."""
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
    instead = {"collect": "collect() it first", "releases": "give one of its releases: publication.release()"}
    hint = next((f"; {text}" for method, text in instead.items() if hasattr(value, method)), "")
    return f"expected {_KNOWN}, not {kind}{hint}"


def is_path(value: object) -> TypeGuard[str | os.PathLike[str]]:
    """Returns true if an object names a file or folder."""
    return isinstance(value, (str, os.PathLike))


def path(value: object, what: str) -> str:
    """Returns a path as text."""
    if is_path(value) and isinstance(text := os.fspath(value), str):
        return text
    raise TypeError(f"{what} must be a path as text, not {type(value).__name__}")


def read_once(value: object) -> object:
    """Reads a table, which may be a stream that can be read only once. Paths and None stay as they are."""
    return value if value is None or is_path(value) else read(value)


def listed(value: object) -> list[object]:
    """Lists the entries of an argument that takes one table or several."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) else [value]
