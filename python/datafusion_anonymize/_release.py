"""Releases: what the world sees, and what their publisher keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from . import _native
from ._errors import Refused
from ._input import is_path, read
from ._sql import Query, identifier, kinds, signatures
from ._table import Table
from ._types import Input


def makers() -> list[str]:
    """Returns the functions that make releases."""
    return [name for name, function in signatures().items() if function["releases"]]


def _knows_people(function: str) -> bool:
    """Returns true if a method knows earlier releases. It needs an identifier, so that its private view is always there."""
    return not {"previous", "worlds"}.isdisjoint(kinds(function))


class Release(Table):
    """A release: the public view. It was drawn once; what is shown, converted, written and asked is this one release."""

    def __init__(
        self,
        public: _native.Table,
        private: _native.Table | None = None,
        original: object | None = None,
        hierarchies: object | None = None,
        memory: tuple[object, ...] = (),
    ) -> None:
        super().__init__(public)
        self._private = private
        self._original = original
        self._hierarchies = hierarchies
        #: The earlier private views that it was made with.
        self._memory = memory
        self._loss: Loss | None = None
        self._counts: dict[str, Any] | None = None
        metadata = public.metadata(public.column_names[0]) if public.column_names else {}
        self._metadata = {key: value for key, value in metadata.items() if key.startswith("anonymize.")}

    @property
    def method(self) -> str:
        """The method that made it."""
        return self._metadata.get("anonymize.method", "")

    @property
    def parameters(self) -> dict[str, Any]:
        """The method's parameters; never the seed."""
        return cast("dict[str, Any]", json.loads(self._metadata.get("anonymize.parameters", "{}")))

    @property
    def private(self) -> Table:
        """The publisher's own view, with identifiers. Keep it where nobody else can read it: the next release needs it, and whoever has
        it can undo this one."""
        if self._private is None:
            raise Refused("there is no private view: the release was made without id=, or is that of a publication")
        return Table(self._private)

    @property
    def groups(self) -> int | None:
        """Number of groups; None where there are none."""
        return cast("int | None", self._counted()["groups"])

    @property
    def counterfeits(self) -> int | None:
        """Rows that are of nobody; None where there are no groups."""
        return cast("int | None", self._counted()["counterfeits"])

    def loss(self, original: Input | None = None, *, hierarchies: Input | None = None) -> Loss:
        """What the release loses, attribute by attribute (``*`` is all): compared with the table that it was made of, or another."""
        given = original is not None or hierarchies is not None
        if self._loss is None or given:
            table = original if original is not None else self._original
            if table is None:
                raise Refused("loss is compared with the original table: give original=")
            found = loss(table, self, hierarchies=hierarchies)  # type: ignore[arg-type]
            if given:
                return found
            self._loss = found
        return self._loss

    def estimate(
        self,
        query: str,
        *,
        distribution: str | None = None,
        hierarchies: Input | None = None,
        prior: Input | None = None,
    ) -> Table:
        """Asks the release as if it were the table it was made of: ``query`` is SQL of a table called ``release``. Counterfeits are
        corrected for, and ranges counted by how much of them fulfils a condition."""
        return estimate(self, query, distribution=distribution, hierarchies=hierarchies, prior=prior)

    def _counted(self) -> dict[str, Any]:
        if self._counts is None:
            if "group_id" in self.columns:
                with Query() as query:
                    table = query.table(self, "release")
                    groups = f"SELECT group_id, max(counterfeits) AS counterfeits FROM {table} GROUP BY group_id"
                    count = f"SELECT count(*) AS groups, coalesce(sum(counterfeits), 0) AS counterfeits FROM ({groups})"
                    self._counts = query.run(count).to_pylist()[0]
            else:
                self._counts = {"groups": None, "counterfeits": None}
        return self._counts

    def _summary(self) -> list[str]:
        parameters = ", ".join(f"{name} = {value}" for name, value in self.parameters.items() if value is not None)
        figures = [f"{len(self):,} rows"]
        if self.groups is not None:
            figures += [f"{self.groups:,} groups", f"{self.counterfeits:,} counterfeits"]
        # A file may have become another one meanwhile.
        if self._original is not None and not is_path(self._original) and self._has_ranges():
            total = self.loss().total
            figures += [f"loss {total:.3f}"] if total is not None else []
        return [f"{self.method}({parameters}): " + ", ".join(figures)]

    def _has_ranges(self) -> bool:
        return bool(self._range_columns())


class Loss(Table):
    """What a release loses, attribute by attribute."""

    @property
    def total(self) -> float | None:
        """The loss metric of all attributes, 0 to 1."""
        return next((row["lm"] for row in self.to_pylist() if row["attribute"] == "*"), None)


def make(function: str, arguments: Mapping[str, object]) -> Release:
    """Calls a method, once. Where there is an identifier, the public view is what is left of the private one."""
    given = dict(arguments)
    previous = given.pop("previous", None)
    memory = chain(previous)
    source = given.get("input")
    if source is not None and not is_path(source):
        # Read once, for a stream can be read once only.
        given["input"] = source = Table(read(source))
    hierarchies = given.get("hierarchies")
    if hierarchies is not None and not is_path(hierarchies):
        given["hierarchies"] = hierarchies = Table(read(hierarchies))
    private = _knows_people(function) or given.get("id") is not None
    with Query() as query:
        call = query.call(function, given)
        if memory:
            call = f"{call[:-1]}, previous => {_previous(query, function, given, memory)})"
        rows = query.run(f"SELECT * FROM {call[:-1]}, private => true)" if private else f"SELECT * FROM {call}", function, 5)
        if not private:
            return Release(rows, None, source, hierarchies, memory)
        public = query.session.columns(f"SELECT * FROM {call}")
    return Release(rows.select(public), rows, source, hierarchies, memory)


def chain(previous: object) -> tuple[object, ...]:
    """All that an earlier release remembers, and itself; tables of earlier releases as they are."""
    if previous is None:
        return ()
    several = isinstance(previous, Sequence) and not isinstance(previous, (str, bytes))
    found: list[object] = []
    for one in cast("Sequence[object]", previous) if several else [previous]:
        if not isinstance(one, Release):
            entries: tuple[object, ...] = (one if is_path(one) else read(one),)
        elif one._private is None:
            raise Refused("previous has no private view: it was made without id=, or is that of a publication")
        else:
            entries = (*one._memory, one._private)
        found += [entry for entry in entries if not any(entry is known for known in found)]
    return tuple(found)


def _previous(query: Query, function: str, arguments: Mapping[str, object], memory: tuple[object, ...]) -> str:
    tables = [query.table(entry if is_path(entry) else Table(cast(_native.Table, entry)), "previous") for entry in memory]
    # How many releases ago somebody was published says how often their value could change; and shares are those of the first release.
    dated = function == "dynamic" or bool(arguments.get("exact")) or arguments.get("assignment") == "drawn"
    if len(tables) == 1 and not (dated and "release" not in query.session.columns(f"SELECT * FROM {tables[0]}")):
        return tables[0]
    selects = []
    for number, table in enumerate(tables, 1):
        columns = query.session.columns(f"SELECT * FROM {table}")
        known = [name for name in ("signature", "signature_label") if name in columns]
        who = arguments.get("id") or next((name for name in columns if name not in known), "")
        # Where values must stay, everybody's own one is read with the rest.
        chosen = "*" if function == "m_invariant" else ", ".join(identifier(str(name)) for name in (who, *known))
        if dated or function == "m_distinct":
            if "release" in columns:
                raise Refused("previous: a table of several releases cannot be joined with others; give one table of all of them")
            chosen += f", CAST({number} AS BIGINT) AS release"
        selects.append(f"SELECT {chosen} FROM {table} WHERE {identifier(str(who))} IS NOT NULL")
    union = (" UNION ALL BY NAME " if function == "m_invariant" else " UNION ALL ").join(selects)
    # Who stays has one signature for ever.
    return f"({union})"


def loss(
    original: Input, release: Input, *, quasi: str | Sequence[str] | None = None, id: str | None = None,
    hierarchies: Input | None = None,
) -> Loss:
    """What a release loses, attribute by attribute: how much wider than the values its ranges are (``information_loss`` in SQL)."""
    rows: object = release
    if isinstance(release, Release):
        rows = Table(release._private) if release._private is not None else release
        if hierarchies is None:
            hierarchies = cast("Input | None", release._hierarchies)
    given: dict[str, object] = {"original": original, "release": rows, "quasi": quasi, "id": id, "hierarchies": hierarchies}
    known = kinds("information_loss")
    with Query() as query:
        call = query.call("information_loss", {name: value for name, value in given.items() if name in known})
        return Loss(query.run(f"SELECT * FROM {call}", "loss", 5))


def estimate(
    release: Input,
    query: str,
    *,
    distribution: str | None = None,
    hierarchies: Input | None = None,
    prior: Input | None = None,
) -> Table:
    """Asks a release as if it were the table it was made of: ``query`` is SQL of a table called ``release``."""
    if isinstance(release, Release) and hierarchies is None:
        hierarchies = cast("Input | None", release._hierarchies)
    with Query() as asked:
        given = {"release": release, "distribution": distribution, "hierarchies": hierarchies, "prior": prior}
        asked.run(f"CREATE VIEW release AS SELECT * FROM {asked.call('estimated', given)}")
        return Table(asked.run(query, "estimate", 5))


__all__ = ["Loss", "Release", "chain", "estimate", "loss", "make", "makers", "signatures"]
