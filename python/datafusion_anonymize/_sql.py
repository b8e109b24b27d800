"""Calls as SQL, and running them."""

from __future__ import annotations

import itertools
import json
import math
import os
import warnings
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import Any, TypedDict

from . import _native
from ._errors import Notice
from ._input import is_path, read
from ._progress import watch


class Parameter(TypedDict):
    """An argument of an SQL function."""

    name: str
    kind: str
    required: bool
    words: list[str]
    default: str | int | float | None
    default_text: str
    text: str


class Function(TypedDict):
    """An SQL function."""

    name: str
    about: str
    releases: bool
    parameters: list[Parameter]


@cache
def signatures() -> dict[str, Function]:
    """All SQL functions, by name."""
    functions: list[Function] = json.loads(_native.signatures())
    return {function["name"]: function for function in functions}


@cache
def kinds(function: str) -> dict[str, str]:
    """What the arguments of an SQL function are."""
    return {parameter["name"]: parameter["kind"] for parameter in signatures()[function]["parameters"]}


def identifier(name: str) -> str:
    """A name in SQL."""
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a column, not {type(name).__name__}")
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"


#: Of tables: threads may share a session, and must not share names.
_numbers = itertools.count(1)


class Query:
    """A session with the tables of one query."""

    def __init__(self, session: _native.Session | None = None) -> None:
        self.session = session if session is not None else _native.Session()
        self._shared = session is not None
        self._names: list[str] = []

    def table(self, value: object, what: str = "table") -> str:
        """A table in SQL: the path of a file, or a name that is registered for it. The name is that of the argument, ``what``: statements and
        errors show it."""
        from ._publication import Publication

        if isinstance(value, Publication):
            if value._session is not self.session:
                raise TypeError("expected a table, not a publication; give one of its releases: publication.release()")
            return identifier(value._name)
        if is_path(value):
            return text(os.fspath(value))  # type: ignore[call-overload]
        name = f"{what}_data_{next(_numbers)}" if self._shared else self._free(f"{what}_data")
        self.session.register(name, read(value))
        self._names.append(name)
        return identifier(name)

    def _free(self, name: str) -> str:
        names = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
        return next(free for free in names if free not in self._names)

    def tables(self, value: object, what: str = "table") -> str:
        """One or several tables in SQL."""
        if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
            return "(" + ", ".join(self.table(one, what) for one in value) + ")"
        return self.table(value, what)

    def argument(self, kind: str, name: str, value: object) -> str:
        """The value of an argument in SQL."""
        if kind in ("relation", "release"):
            return self.table(value, name)
        if kind == "relations":
            return self.tables(value, name)
        if kind == "columns":
            names = [value] if isinstance(value, str) else list(_sequence(name, value))
            return "(" + ", ".join(identifier(one) for one in names) + ")"
        if kind == "column":
            return identifier(_text(name, value))
        if kind == "word" or (kind in ("integer or word", "number or word") and isinstance(value, str)):
            return text(_text(name, value))
        if kind == "word or relation" and isinstance(value, str) and value in _words(name):
            return text(value)
        if kind == "boolean":
            if not isinstance(value, bool):
                raise TypeError(f"{name} must be True or False, not {type(value).__name__}")
            return "true" if value else "false"
        if kind in ("integer", "integer or word"):
            return _integer(name, value)
        if kind in ("number", "number or word") or (kind == "number or relation" and _is_number(value)):
            return _number(name, value)
        if kind == "seed":
            return text(value) if isinstance(value, str) else _integer(name, value)
        if kind == "length":
            return _length(name, value)
        return self.table(value, name)

    def call(self, function: str, arguments: Mapping[str, object]) -> str:
        """A call in SQL. What is None is left out."""
        known = kinds(function)
        given = [(name, value) for name, value in arguments.items() if value is not None]
        written = [f"{name} => {self.argument(known[name], name, value)}" for name, value in given]
        return f"{function}({', '.join(written)})"

    def run(self, query: str, what: str = "", level: int = 4) -> _native.Table:
        """Runs a query to its end, with progress, and warns of what is worth knowing."""
        with watch(what) as progress:
            table = self.session.sql(query, progress)
        self._warn(level + 1)
        return table

    def insert(self, statement: str, period: str | None = None, level: int = 4) -> tuple[int, int | None, list[str]]:
        """Runs an INSERT into a publication. Returns how many rows it has published, the number of the release that has them, and ordinary facts of it."""
        with watch("insert") as progress:
            rows, release, facts = self.session.insert(statement, progress, period)
        self._warn(level + 1)
        return int(rows.to_pylist()[0]["count"]), release, facts

    def _warn(self, level: int) -> None:
        for notice in self.session.notices():
            warnings.warn(notice, Notice, stacklevel=level)

    def close(self) -> None:
        """Takes the names of the tables back."""
        for name in self._names:
            self.session.deregister(name)
        self._names.clear()

    def __enter__(self) -> Query:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _words(name: str) -> set[str]:
    return {
        word
        for function in signatures().values()
        for parameter in function["parameters"]
        if parameter["name"] == name
        for word in parameter["words"]
    }


def _sequence(name: str, value: object) -> Sequence[Any]:
    if isinstance(value, Sequence):
        return value
    raise TypeError(f"{name} must be the name of a column or a list of names, not {type(value).__name__}")


def _text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    raise TypeError(f"{name} must be a text, not {type(value).__name__}")


def _is_number(value: object) -> bool:
    return not isinstance(value, bool) and hasattr(value, "__float__") and not hasattr(value, "__arrow_c_stream__")


def _integer(name: str, value: Any) -> str:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a whole number, not {type(value).__name__}")
    return str(int(value))


def _number(name: str, value: Any) -> str:
    if not _is_number(value):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    if hasattr(value, "__index__"):
        return str(int(value))
    number = float(value)
    if not math.isfinite(number):
        raise TypeError(f"{name} must be a finite number")
    return repr(number)


def _length(name: str, value: Any) -> str:
    if isinstance(value, timedelta):
        return f"INTERVAL '{value.days} days {value.seconds} seconds {value.microseconds} microseconds'"
    if isinstance(value, str):
        return f"INTERVAL {text(value)}"
    return _integer(name, value)
