"""Publications: what is published again and again, and remembers what later releases must know."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from . import _native
from ._chart import Chart, draw
from ._errors import Refused
from ._input import is_path, read
from ._release import Release
from ._sql import Query, identifier
from ._table import Table
from ._types import Columns, Input

_NAME = "publication"


@dataclass(frozen=True)
class Inserted:
    """What an insertion has published."""

    #: Rows of the release; 0 if the snapshot had been published before.
    rows: int
    #: Number of the release that has them: the one that this insertion has made, or an earlier one that was made of this snapshot.
    release: int
    #: What is usual, in words: how many people of the snapshot were in an earlier release, and how many are missing. Warnings (``Notice``) are of
    #: what is not.
    facts: tuple[str, ...] = field(default=(), compare=False)


class Audit(Table):
    """Whether a publication keeps its promises, check by check."""

    @property
    def passed(self) -> bool:
        """Whether all checks have passed."""
        return all(self["passed"])

    @property
    def failed(self) -> list[dict[str, Any]]:
        """The checks that have not."""
        return [row for row in self.to_pylist() if not row["passed"]]

    def _summary(self) -> list[str]:
        failed = len(self.failed)
        return [f"{len(self):,} checks, " + (f"{failed} have failed" if failed else "all have passed")]


class Publication:
    """A table that is published again and again: insert a snapshot, and the next release is published."""

    def __init__(self, session: _native.Session, location: str, columns: Mapping[str, str] | None) -> None:
        self._session = session
        self._name = _NAME
        #: Names and types.
        self._columns = columns
        #: Where it is.
        self.location = location

    def insert(self, data: Input, *, period: int | str | date | None = None) -> Inserted:
        """Publishes a snapshot as the next release. May be run again: the snapshot of an earlier release is recognized, and not
        published twice; one that was interrupted is completed.

        Args:
            data: the snapshot.
            period: of which day it is, where values change by a law (``dynamic``, and ``m_distinct`` with ``exact``), or its week, month or
                quarter (``"2026-Q1"``). Needed there with each snapshot, also where nothing has changed.

        Raises:
            Conflict: when somebody else has published in the meantime; insert again.
        """
        if self._columns is None:
            raise Refused(
                "this publication was opened for reading; to publish, open it with method=, its arguments, and schema=",
                function="publication",
            )
        with Query(self._session) as query:
            table = query.table(data, "snapshot")
            there = _kinds(query.session.sql(f"SELECT * FROM {table} LIMIT 0"))
            names = ", ".join(identifier(name) for name in self._columns if name in there)
            if not names:
                raise Refused(f"the snapshot has none of the columns {', '.join(self._columns)}", function="publication")
            self._check_fractions(query.session, table, there)
            statement = f"INSERT INTO {self._name} ({names}) SELECT {names} FROM {table}"
            rows, release, facts = query.insert(statement, None if period is None else _period(period))
        if release is None:
            release = max(self.releases()["release"], default=0)
        return Inserted(rows=rows, release=release, facts=tuple(facts))

    def _check_fractions(self, session: _native.Session, table: str, there: Mapping[str, str]) -> None:
        """A cast to whole numbers would leave fractions out without a word."""
        whole = ("Int", "UInt")
        suspects = [
            name for name, kind in (self._columns or {}).items() if kind.startswith(whole) and there.get(name, "").startswith("Float")
        ]
        for name in suspects:
            column = identifier(name)
            count = session.sql(f"SELECT count(*) AS n FROM {table} WHERE {column} <> floor({column})").to_pylist()[0]["n"]
            if int(count):
                raise Refused(
                    f"the snapshot has fractions in {name}, which the publication has as whole numbers; open it with a schema= in which {name} is a "
                    f"number with fractions, or round them: data[{name!r}].round()",
                    function="publication",
                )

    def release(self, number: int | None = None) -> Release:
        """The rows of a release, of the newest without a number."""
        which = "" if number is None else f", {int(number)}"
        return Release(self._asked(f"SELECT * FROM release({self._name}{which})", "release"))

    def releases(self) -> Table:
        """The releases so far: when, how, and how many rows, groups and counterfeits."""
        return Table(self._asked(f"SELECT * FROM releases({self._name}) ORDER BY release", "releases"))

    def audit(self) -> Audit:
        """Checks the stored tables against what was promised."""
        return Audit(self._asked(f"SELECT * FROM audit({self._name})", "audit"))

    def check(self, snapshots: Sequence[Input], *, private: bool = False) -> Table:
        """What would be refused of historical snapshots, in their order; nothing is written."""
        with Query(self._session) as query:
            tables = query.tables(list(snapshots), "snapshot")
            call = f"check_snapshots({self._name}, {tables}, private => {'true' if private else 'false'})"
            return Table(query.run(f"SELECT * FROM {call}", "check"))

    def estimate(self, query: str) -> Table:
        """Asks the newest release as if it were the table it was made of: ``query`` is SQL of a table called ``publication``."""
        return Table(self._asked(query, "estimate"))

    def plot(self) -> Chart:
        """People, groups and counterfeits by release, and the loss where the ledger can be read."""
        rows = self.releases().to_pylist()
        lines: dict[str, list[tuple[float, float]]] = {
            "people": [(row["release"], row["rows"] - row["counterfeits"]) for row in rows],
            "groups": [(row["release"], row["groups"]) for row in rows],
            "counterfeits": [(row["release"], row["counterfeits"]) for row in rows],
        }
        pictures = [draw("Releases", "release", "number", lines)]
        losses = [(row["release"], row["information_loss"]) for row in rows if row["information_loss"] is not None]
        if losses:
            pictures.append(draw("What releases lose", "release", "information loss", {"loss": losses}))
        return Chart(pictures)

    def _asked(self, statement: str, what: str) -> _native.Table:
        return Query(self._session).run(statement, what, 5)

    def __repr__(self) -> str:
        return f"<Publication at {self.location}: {len(self.releases())} releases>"


def publication(
    location: str | os.PathLike[str],
    *,
    method: str | None = None,
    schema: Input | None = None,
    id: str | None = None,
    quasi: Columns | None = None,
    sensitive: Columns | None = None,
    hierarchies: Input | None = None,
    updates: Input | None = None,
    private: str | os.PathLike[str] | None = None,
    begin: bool = False,
    max_missing: float | None = None,
    storage: Mapping[str, str] | None = None,
    memory_limit: int | str | None = None,
    **arguments: object,
) -> Publication:
    """Opens a publication. Without a method, for reading only.

    Args:
        location: where readers find it, a folder or URL.
        method: ``"m_invariant"``, ``"m_distinct"``, ``"dynamic"``, ``"sequential"``, ``"muco"``, ``"mondrian"``, ``"anatomy"`` or ``"reposition"``.
        schema: the table that is inserted into, or one like it; only its columns count.
        private: where the ledger is; beside ``location`` unless told otherwise.
        begin: True once, where the publication is to begin; else a place where nothing is counts as storage that is away, and is refused.
        max_missing: which share of the people of the newest release may be missing in the next one, 0 to 1. An identifier that is written in
            another way makes somebody new of somebody known, whom both releases then give away. If nobody says it, a snapshot is refused only
            if nobody returns.
        storage: options of object stores, such as ``{"aws.region": ".."}``.
        arguments: those of the method (``m``, ``k``, ``balance``, ..) and of publications (``allow_repeated_snapshots``, ..).
    """
    from ._connection import memory

    session = _native.Session(memory(memory_limit))
    place = _place(location)
    options = dict(storage or {})
    if method is None:
        said = {"id": id, "quasi": quasi, "sensitive": sensitive, "begin": begin or None, "max_missing": max_missing}
        given = [*arguments, *(name for name, value in said.items() if value is not None)]
        if given:
            raise Refused(f"publication: {given[0]} says how to publish, but there is no method=", function="publication", argument="method")
        session.publication(_NAME, place, options)
        return Publication(session, place, None)
    if schema is None:
        raise Refused("publication: give schema=, the table that is inserted, or one like it", function="publication", argument="schema")
    roles = {"id": id, "quasi": quasi, "sensitive": sensitive}
    values = {**roles, **arguments, "begin": begin or None, "max_missing": max_missing, "private": None if private is None else _place(private)}
    options.update({"method": method, **{name: _option(name, value) for name, value in values.items() if value is not None}})
    query = Query(session)
    for name, relation in (("hierarchies", hierarchies), ("updates", updates)):
        if relation is None:
            continue
        if is_path(relation) or (name == "updates" and relation == "any"):
            options[name] = os.fspath(relation)  # type: ignore[arg-type]
        else:
            session.register(f"publication_{name}", read(relation))
            options[name] = f"publication_{name}"
    columns = session.sql(f"SELECT * FROM {query.table(schema, 'schema')} LIMIT 0")
    query.close()
    session.publication(_NAME, place, options, columns)
    return Publication(session, place, _kinds(columns))


def _kinds(table: _native.Table) -> dict[str, str]:
    return {name: kind for name, kind, _ in table.columns()}


def _place(location: str | os.PathLike[str]) -> str:
    place = os.fspath(location)
    if not isinstance(place, str):
        raise TypeError("expected a location as a text")
    return place


def _period(period: int | str | date) -> str:
    # Of times, the day.
    return str(period.date() if isinstance(period, datetime) else period)


def _option(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        names = [str(one) for one in value]
        if any("," in one for one in names):
            raise Refused(f"publication: names of columns cannot have commas, as one of {name} does", function="publication", argument=name)
        return ", ".join(names)
    return str(value)
