"""Releases: the public view, and the private one of their publisher."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

from . import _native
from ._errors import Refused
from ._input import is_path, listed, read_once
from ._sql import Query, Sql, parameters
from ._table import Table
from ._types import Columns, Input


class Release(Table):
    """Holds the public view of a release. It was drawn once; what is shown, converted, written and asked is this one release."""

    def __init__(
        self,
        public: _native.Table,
        private: _native.Table | None = None,
        original: object = None,
        hierarchies: object = None,
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
        """Returns the method that made it."""
        return self._metadata.get("anonymize.method", "")

    @property
    def parameters(self) -> dict[str, Any]:
        """Returns the method's parameters; never the seed."""
        return cast("dict[str, Any]", json.loads(self._metadata.get("anonymize.parameters", "{}")))

    @property
    def private(self) -> Table:
        """Returns the publisher's own view, with identifiers. Keep it secret: the next release needs it, and anyone who has it can undo this one."""
        if self._private is None:
            raise Refused("there is no private view: the release was made without id=, or is that of a publication")
        return Table(self._private)

    @property
    def groups(self) -> int | None:
        """Returns the number of groups; None where there are none."""
        return cast("int | None", self._counted()["groups"])

    @property
    def counterfeits(self) -> int | None:
        """Returns the number of counterfeits; None where there are no groups."""
        return cast("int | None", self._counted()["counterfeits"])

    def loss(self, original: Input | None = None, *, hierarchies: Input | None = None) -> Loss:
        """Returns the loss by column (``*`` is all), compared with the table that the release was made of, or another."""
        given = original is not None or hierarchies is not None
        if self._loss is None or given:
            table = original if original is not None else self._original
            if table is None:
                raise Refused("loss is compared with the original table: give original=", argument="original")
            found = loss(cast("Input", table), self, hierarchies=hierarchies)
            if given:
                return found
            self._loss = found
        return self._loss

    def estimate(
        self,
        query: str,
        *,
        distribution: Literal["fitted", "uniform"] | None = None,
        hierarchies: Input | None = None,
        prior: Input | None = None,
    ) -> Table:
        """Asks the release as if it were the table it was made of: ``query`` is SQL of a table called ``release``. Counterfeits are
        corrected for, and ranges counted by how much of them fulfils a condition."""
        return estimate(self, query, distribution=distribution, hierarchies=hierarchies, prior=prior)

    def _counted(self) -> dict[str, Any]:
        if self._counts is None:
            self._counts = {"groups": None, "counterfeits": None}
            if "group_id" in self.columns:
                groups = "SELECT group_id, max(counterfeits) AS counterfeits FROM this GROUP BY group_id"
                count = f"SELECT count(*) AS groups, coalesce(sum(counterfeits), 0) AS counterfeits FROM ({groups})"
                self._counts = self._asked(count).to_pylist()[0]
        return self._counts

    def _summary(self) -> list[str]:
        shown = ", ".join(f"{name} = {value}" for name, value in self.parameters.items() if value is not None)
        figures = [f"{len(self):,} rows"]
        if self.groups is not None:
            figures += [f"{self.groups:,} groups", f"{self.counterfeits:,} counterfeits"]
        # A file may have become another one meanwhile.
        if self._original is not None and not is_path(self._original) and self._range_columns():
            total = self.loss().total
            figures += [f"loss {total:.3f}"] if total is not None else []
        return [f"{self.method}({shown}): " + ", ".join(figures)]


class Loss(Table):
    """Holds the loss of a release by column."""

    @property
    def total(self) -> float | None:
        """Returns the loss metric of all columns, 0 to 1."""
        return next((row["lm"] for row in self.to_pylist() if row["attribute"] == "*"), None)


def make(function: str, arguments: Mapping[str, object]) -> Release:
    """Calls a method, once. Where there is an identifier, the public view is made of columns of the private one."""
    given = dict(arguments)
    memory = _chain(given.pop("previous", None))
    # What is read here is read once, and kept.
    original, hierarchies = given["input"], given["hierarchies"] = read_once(given["input"]), read_once(given.get("hierarchies"))
    # Methods that know earlier releases need an identifier; anatomy knows them with close groups.
    knows = function != "anatomy" or given.get("groups") == "close"
    private = (knows and not {"previous", "worlds"}.isdisjoint(parameters(function))) or given.get("id") is not None
    with Query() as query:
        if memory:
            given["previous"] = _numbered(query, memory)
        written = query.arguments(function, given)
        if not private:
            return Release(query.run(f"SELECT * FROM {function}({written})", function), None, original, hierarchies, memory)
        rows = query.run(f"SELECT * FROM {function}({written}, private => true)", function)
        public = query.session.columns(f"SELECT * FROM {function}({written})")
    return Release(rows.select(public), rows, original, hierarchies, memory)


def _chain(previous: object) -> tuple[object, ...]:
    """Returns the private views of earlier releases and of those before them; tables and paths stay as they are."""
    found: list[object] = []
    for one in [] if previous is None else listed(previous):
        if not isinstance(one, Release):
            entries: tuple[object, ...] = (read_once(one),)
        elif one._private is None:
            raise Refused("previous has no private view: it was made without id=, or is that of a publication", argument="previous")
        else:
            entries = (*one._memory, one._private)
        found += [entry for entry in entries if not any(entry is known for known in found)]
    return tuple(found)


def _numbered(query: Query, memory: tuple[object, ...]) -> Sql:
    """Writes earlier releases in their order, by which SQL numbers them. It does not number a single one, which is the first."""
    tables = query.tables(memory, "previous")
    if len(memory) == 1 and "release" not in query.session.columns(f"SELECT * FROM {tables}"):
        tables = f"(SELECT *, CAST(1 AS BIGINT) AS release FROM {tables})"
    return Sql(tables)


def hierarchies_of(given: Input | None, releases: Iterable[object]) -> object:
    """Returns the hierarchies that are given, or else those that a release was made with."""
    if given is not None:
        return given
    known = (release._hierarchies for release in releases if isinstance(release, Release))
    return next((hierarchies for hierarchies in known if hierarchies is not None), None)


def loss(
    original: Input, release: Input, *, quasi: Columns | None = None, id: str | None = None, hierarchies: Input | None = None
) -> Loss:
    """Returns the loss of a release by column: how much wider than the values its ranges are."""
    rows: object = Table(release._private) if isinstance(release, Release) and release._private is not None else release
    given = {"original": original, "release": rows, "quasi": quasi, "id": id, "hierarchies": hierarchies_of(hierarchies, [release])}
    with Query() as query:
        return Loss(query.rows("information_loss", given, "loss"))


def estimate(
    release: Input,
    query: str,
    *,
    distribution: Literal["fitted", "uniform"] | None = None,
    hierarchies: Input | None = None,
    prior: Input | None = None,
) -> Table:
    """Asks a release as if it were the table it was made of: ``query`` is SQL of a table called ``release``."""
    given = {"release": release, "distribution": distribution, "hierarchies": hierarchies_of(hierarchies, [release]), "prior": prior}
    with Query() as asked:
        asked.run(f"CREATE VIEW release AS SELECT * FROM estimated({asked.arguments('estimated', given)})")
        return Table(asked.run(query, "estimate"))
