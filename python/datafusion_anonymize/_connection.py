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
    """A session of SQL: DataFusion with all functions of this package."""

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
    return Connection(_native.Session(memory(memory_limit)))


def memory(limit: int | str | None) -> int | None:
    """A limit in bytes."""
    if limit is None or isinstance(limit, int):
        if limit is not None and (isinstance(limit, bool) or limit <= 0):
            raise Refused("memory_limit must be a number of bytes above 0")
        return limit
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", limit.lower())
    if found is None or float(found[1]) == 0:
        raise Refused("memory_limit must be a number of bytes, or a text such as '4GB'")
    return int(float(found[1]) * _UNITS[found[2]])
