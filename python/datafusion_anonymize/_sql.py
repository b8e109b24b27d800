"""Calls as SQL, and running them."""

from __future__ import annotations

import itertools
import json
import math
import operator
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import SupportsFloat, SupportsIndex, TypedDict, TypeGuard

from . import _native
from ._errors import Notice, Refused
from ._input import is_path, listed, path, read
from ._progress import watch


class Parameter(TypedDict):
    """Argument of an SQL function, or option of publications. An option is there once for each method that takes it."""

    name: str
    kind: str
    required: bool
    words: list[str]
    default: str | int | float | None
    default_text: str
    text: str
    example: str | None
    method: str | None


class Function(TypedDict):
    """SQL function, or the publications as one."""

    name: str
    about: str
    releases: bool
    parameters: list[Parameter]


class Sql(str):
    """Table that is written in SQL already."""


@cache
def signatures() -> dict[str, Function]:
    """Returns all SQL functions, by name."""
    functions: list[Function] = json.loads(_native.signatures())
    return {function["name"]: function for function in functions}


@cache
def parameters(function: str) -> dict[str, Parameter]:
    """Returns the arguments of an SQL function, by name."""
    return {parameter["name"]: parameter for parameter in signatures()[function]["parameters"]}


def identifier(name: str) -> str:
    """Quotes a name for SQL."""
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a column, not {type(name).__name__}")
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Quotes a text for SQL."""
    return "'" + value.replace("'", "''") + "'"


class Composite(tuple[str, ...]):
    """Sensitive columns of which the combination alone is hidden."""


def composite(*columns: str) -> Composite:
    """Returns sensitive columns of which the combination alone is hidden: one column by itself can be certain.

    Example:
        an.m_invariant(patients, m=3, id="patient_id", quasi=["age"], sensitive=an.composite("disease", "drug"))
    """
    return Composite(columns)


#: Of tables: threads may share a session, and must not share names.
_numbers = itertools.count(1)


class Query:
    """Session with the tables of one query."""

    def __init__(self, session: _native.Session | None = None) -> None:
        self.session = session if session is not None else _native.Session()
        self._shared = session is not None
        self._names: list[str] = []

    def table(self, value: object, what: str = "table") -> str:
        """Writes a table in SQL: the path of a file, or a name that is registered for it."""
        if isinstance(value, Sql):
            return value
        return text(os.fspath(value)) if is_path(value) else identifier(self.register(value, what))

    def register(self, value: object, what: str) -> str:
        """Registers a table and returns its name. That is made of the argument's, ``what``: statements and errors show it."""
        name = f"{what}_data_{next(_numbers)}" if self._shared else self._free(f"{what}_data")
        self.session.register(name, read(value))
        self._names.append(name)
        return name

    def _free(self, name: str) -> str:
        names = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
        return next(free for free in names if free not in self._names)

    def tables(self, value: object, what: str = "table") -> str:
        """Writes one or several tables in SQL."""
        written = [self.table(one, what) for one in listed(value)]
        return written[0] if len(written) == 1 else f"({', '.join(written)})"

    def argument(self, parameter: Parameter, value: object) -> str:
        """Writes the value of an argument in SQL."""
        name, kind = parameter["name"], parameter["kind"]
        if _is_table(parameter, value):
            return self.tables(value, name) if kind == "relations" else self.table(value, name)
        if kind == "columns":
            function = "composite" if isinstance(value, Composite) else ""
            return f"{function}({', '.join(identifier(column) for column in _columns(name, value))})"
        plain = _plain(parameter, value)
        if kind == "column":
            return identifier(plain)
        if kind == "length" and isinstance(value, (str, timedelta)):
            return f"INTERVAL {text(plain)}"
        return text(plain) if isinstance(value, str) else plain

    def option(self, parameter: Parameter, value: object) -> str:
        """Writes the value of an option of a publication."""
        name = parameter["name"]
        if _is_table(parameter, value):
            return os.fspath(value) if is_path(value) else self.register(value, name)
        if parameter["kind"] != "columns":
            return _plain(parameter, value)
        columns = _columns(name, value)
        if any("," in column for column in columns):
            wrong = f"publication: names of columns cannot have commas, as {name} has; write several as a list"
            raise Refused(wrong, function="publication", argument=name)
        return f"composite({', '.join(columns)})" if isinstance(value, Composite) else ", ".join(columns)

    def arguments(self, function: str, given: Mapping[str, object]) -> str:
        """Writes the arguments of a call in SQL. Those that are None are left out."""
        known = parameters(function)
        return ", ".join(f"{name} => {self.argument(known[name], value)}" for name, value in given.items() if value is not None)

    def rows(self, function: str, given: Mapping[str, object], what: str | None = None) -> _native.Table:
        """Calls a function, and returns its rows."""
        return self.run(f"SELECT * FROM {function}({self.arguments(function, given)})", function if what is None else what)

    def run(self, query: str, what: str = "") -> _native.Table:
        """Runs a query to its end, with progress, and warns of what is worth knowing."""
        with watch(what) as progress:
            table = self.session.sql(query, progress)
        self._warn()
        return table

    def insert(self, statement: str, period: str | None = None) -> tuple[int, int | None, list[str]]:
        """Runs an INSERT into a publication. Returns how many rows it has published, the number of their release, and ordinary facts of it."""
        with watch("insert") as progress:
            rows, release, facts = self.session.insert(statement, progress, period)
        self._warn()
        return int(rows.to_pylist()[0]["count"]), release, facts

    def _warn(self) -> None:
        for notice in self.session.notices():
            warnings.warn(notice, Notice, stacklevel=_callers_level())

    def close(self) -> None:
        """Takes the names of the tables back."""
        for name in self._names:
            self.session.deregister(name)
        self._names.clear()

    def __enter__(self) -> Query:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _callers_level() -> int:
    """Returns the stack level, for whoever calls this, of the first caller outside of the package."""
    level = 1
    while sys._getframe(level).f_globals.get("__package__") == __package__:
        level += 1
    return level


def _is_table(parameter: Parameter, value: object) -> bool:
    """Returns true if a value is given as a table."""
    if parameter["kind"] == "word or relation":
        return not (isinstance(value, str) and value in parameter["words"])
    return parameter["kind"] in ("relation", "release", "relations") or (parameter["kind"] == "number or relation" and not _is_number(value))


def _columns(name: str, value: object) -> list[str]:
    """Returns the names of columns."""
    names = [value] if isinstance(value, str) else value
    if isinstance(names, Sequence) and all(isinstance(column, str) for column in names):
        return list(names)
    raise TypeError(f"{name} must be the name of a column or a list of names, not {type(value).__name__}")


#: What an argument of each kind may be, in words.
_EXPECTED = {
    "boolean": "True or False",
    "integer": "a whole number",
    "number": "a number",
    "word": "a text",
    "column": "the name of a column",
    "seed": "a whole number or a text",
    "length": "a whole number, a timedelta or a text",
    "place": "a path as text",
}


def _plain(parameter: Parameter, value: object) -> str:
    """Checks the type of a value that is no table, and returns it as text without quotes."""
    kinds = set(parameter["kind"].split(" or ")) - {"relation"}
    if isinstance(value, bool):
        if "boolean" in kinds:
            return "true" if value else "false"
    elif isinstance(value, str) and kinds & {"word", "column", "seed", "length"}:
        return value
    elif isinstance(value, timedelta) and "length" in kinds:
        return f"{value.days} days {value.seconds} seconds {value.microseconds} microseconds"
    elif isinstance(value, SupportsIndex) and kinds & {"integer", "number", "seed", "length"}:
        return str(operator.index(value))
    elif _is_number(value) and "number" in kinds:
        if not math.isfinite(value):
            raise Refused(f"{parameter['name']} must be a finite number", argument=parameter["name"])
        return repr(float(value))
    elif "place" in kinds:
        return path(value, parameter["name"])
    expected = " or ".join(_EXPECTED[kind] for kind in sorted(kinds))
    raise TypeError(f"{parameter['name']} must be {expected}, not {type(value).__name__}")


def _is_number(value: object) -> TypeGuard[SupportsFloat]:
    return not isinstance(value, bool) and hasattr(value, "__float__") and not hasattr(value, "__arrow_c_stream__")
