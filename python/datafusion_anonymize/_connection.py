"""Sessions of SQL."""

from __future__ import annotations

import re

from . import _native
from ._errors import Refused
from ._input import read
from ._sql import Query
from ._table import Table
from ._types import Input

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Connection:
    """Runs SQL: DataFusion with all functions of this package."""

    def __init__(self, session: _native.Session) -> None:
        self._session = session

    def register(self, name: str, data: Input) -> None:
        """Gives a table a name in SQL. It is read now; a file is read by its path in SQL: ``FROM 'people.parquet'``."""
        self._session.register(name, read(data))

    def deregister(self, name: str) -> None:
        """Takes the name back."""
        self._session.deregister(name)

    def sql(self, query: str) -> Table:
        """Runs a statement to its end. A release in it is drawn once; the rows are kept."""
        return Table(Query(self._session).run(query, "query"))


def connect(*, memory_limit: int | str | None = None) -> Connection:
    """Begins a session. ``memory_limit`` is in bytes, or a text such as ``"4GB"`` (units are powers of 1,024, as in the shell)."""
    return Connection(session(memory_limit))


def session(memory_limit: int | str | None) -> _native.Session:
    """Begins a native session with a limit in bytes, or such a text."""
    if memory_limit is None:
        return _native.Session()
    if isinstance(memory_limit, bool) or not isinstance(memory_limit, (int, str)):
        raise TypeError(f"memory_limit must be a whole number or a text, not {type(memory_limit).__name__}")
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", str(memory_limit).lower())
    limit = 0 if found is None else int(float(found[1]) * _UNITS[found[2]])
    if limit == 0:
        raise Refused("memory_limit must be a number of bytes above 0, or a text such as '4GB'", argument="memory_limit")
    return _native.Session(limit)
