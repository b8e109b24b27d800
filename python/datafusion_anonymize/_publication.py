"""Publications: series of releases that know of each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from . import _native
from ._chart import Chart, draw
from ._connection import session
from ._errors import Refused
from ._input import path
from ._release import Release
from ._sql import Query, Sql, identifier, parameters
from ._table import Table
from ._types import Input

#: Name of the publication in its session.
NAME = "publication"


@dataclass(frozen=True)
class Inserted:
    """Tells the result of an insertion."""

    #: Rows of the release; 0 if the snapshot had been published before.
    rows: int
    #: Number of the release that has them: the one that this insertion has made, or an earlier one that was made of this snapshot.
    release: int
    #: Ordinary facts: how many people of the snapshot were in an earlier release, and how many are missing. Others are warnings (``Notice``).
    facts: tuple[str, ...] = field(default=(), compare=False)


class Audit(Table):
    """Holds the checks of a publication."""

    @property
    def passed(self) -> bool:
        """Returns true if all checks have passed."""
        return all(self["passed"])

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Returns the checks that have failed."""
        return [row for row in self.to_pylist() if not row["passed"]]

    def _summary(self) -> list[str]:
        failed = len(self.failed)
        return [f"{len(self):,} checks, " + (f"{failed} have failed" if failed else "all have passed")]


class Publication:
    """Publishes a table again and again: insert a snapshot, and the next release is published."""

    def __init__(self, session: _native.Session, location: str, columns: Mapping[str, str] | None) -> None:
        self._session = session
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
            Conflict: when another job has published in the meantime; insert again.
        """
        if self._columns is None:
            raise Refused(
                "this publication was opened for reading; to publish, open it with method=, its arguments, and schema=",
                function=NAME,
            )
        with Query(self._session) as query:
            table = query.table(data, "snapshot")
            there = _kinds(query.session.sql(f"SELECT * FROM {table} LIMIT 0"))
            names = ", ".join(identifier(name) for name in self._columns if name in there)
            if not names:
                raise Refused(f"the snapshot has none of the columns {', '.join(self._columns)}", function=NAME)
            self._check_fractions(query.session, table, there)
            statement = f"INSERT INTO {NAME} ({names}) SELECT {names} FROM {table}"
            rows, release, facts = query.insert(statement, None if period is None else _period(period))
        if release is None:
            release = max(self.releases()["release"], default=0)
        return Inserted(rows=rows, release=release, facts=tuple(facts))

    def _check_fractions(self, session: _native.Session, table: str, there: Mapping[str, str]) -> None:
        """Refuses fractions in columns of whole numbers, which a cast would leave out without a word."""
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
                    function=NAME,
                )

    def release(self, number: int | None = None) -> Release:
        """Returns a release, the newest one without a number."""
        which = "" if number is None else f", {int(number)}"
        return Release(self._asked(f"SELECT * FROM release({NAME}{which})", "release"))

    def releases(self) -> Table:
        """Lists the releases so far: when, how, and how many rows, groups and counterfeits."""
        return Table(self._asked(f"SELECT * FROM releases({NAME}) ORDER BY release", "releases"))

    def audit(self) -> Audit:
        """Checks the stored tables against what was promised."""
        return Audit(self._asked(f"SELECT * FROM audit({NAME})", "audit"))

    def check(self, snapshots: Sequence[Input], *, private: bool = False) -> Table:
        """Tells which historical snapshots would be refused, in their order. Writes nothing."""
        with Query(self._session) as query:
            given = {"publication": Sql(NAME), "snapshots": list(snapshots), "private": private}
            return Table(query.rows("check_snapshots", given, "check"))

    def estimate(self, query: str) -> Table:
        """Asks the newest release as if it were the table it was made of: ``query`` is SQL of a table called ``publication``."""
        return Table(self._asked(query, "estimate"))

    def plot(self) -> Chart:
        """Draws people, groups and counterfeits by release, and the loss where the ledger can be read."""
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
        return Query(self._session).run(statement, what)

    def __repr__(self) -> str:
        return f"<Publication at {self.location}: {len(self.releases())} releases>"


def open_publication(given: Mapping[str, Any]) -> Publication:
    """Opens a publication of the arguments of ``publication``."""
    options = {name: value for name, value in given.items() if value is not None}
    location = path(options.pop("location"), "location")
    opened = session(options.pop("memory_limit", None))
    stores = dict(options.pop("storage", {}))
    if "method" not in options:
        said = next((name for name, value in options.items() if value is not False), None)
        if said is not None:
            raise Refused(f"publication: {said} says how to publish, but there is no method=", function=NAME, argument="method")
        opened.publication(NAME, location, stores)
        return Publication(opened, location, None)
    if "schema" not in options:
        raise Refused("publication: give schema=, the table that is inserted, or one like it", function=NAME, argument="schema")
    schema = options.pop("schema")
    known = parameters(NAME)
    # Its tables keep their names: each insertion reads them.
    query = Query(opened)
    stores.update({name: query.option(known[name], value) for name, value in options.items()})
    with Query(opened) as reading:
        columns = opened.sql(f"SELECT * FROM {reading.table(schema, 'schema')} LIMIT 0")
    opened.publication(NAME, location, stores, columns)
    return Publication(opened, location, _kinds(columns))


def _kinds(table: _native.Table) -> dict[str, str]:
    return {name: kind for name, kind, _ in table.columns()}


def _period(period: int | str | date) -> str:
    # Of times, the day.
    return str(period.date() if isinstance(period, datetime) else period)
