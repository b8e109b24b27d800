"""Disclosure by releases, and comparisons of settings."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from ._chart import Chart, draw
from ._errors import Refused
from ._input import listed, read_once
from ._publication import NAME, Publication
from ._release import Release, hierarchies_of, loss, make
from ._sql import Query, Sql, identifier, parameters, signatures, text
from ._table import Table
from ._types import Columns, Input, Inputs, Seed

#: Releases, or all those of a publication.
Releases: TypeAlias = Inputs | Publication

#: Readers who know which group holds each person: they are shown private views.
_KNOW_GROUPS = ("group", "joint")


class Disclosure(Table):
    """Holds what a reader can infer about each person."""

    @property
    def max_risk(self) -> float | None:
        """Returns the greatest probability of a true value (the re-publication risk)."""
        return cast("float | None", self._one("max(risk)"))

    @property
    def vulnerable(self) -> int:
        """Counts people of whom only one value is left in some release."""
        return cast(int, self._one(f"count(DISTINCT {identifier(self.columns[0])}) FILTER (WHERE vulnerable)"))

    def plot(self) -> Chart:
        """Draws how many people have at least each risk, release by release."""
        query = "SELECT release, risk, count(*) AS people FROM this WHERE risk IS NOT NULL GROUP BY release, risk ORDER BY release, risk DESC"
        lines: dict[str, list[tuple[float, float]]] = {}
        for row in self._asked(query).to_pylist():
            line = lines.setdefault(f"release {row['release']}", [])
            line.append((row["risk"], row["people"] + (line[-1][1] if line else 0)))
        return Chart([draw("What a reader can infer", "risk", "people with at least this risk", lines)])

    def _one(self, what: str) -> Any:
        return self._asked(f"SELECT {what} AS it FROM this").to_pylist()[0]["it"]

    def _summary(self) -> list[str]:
        if "risk" not in self.columns:
            return super()._summary()
        risk = self.max_risk
        shown = "none" if risk is None else f"{risk:.3f}"
        return [f"{len(self):,} rows: greatest risk {shown}, {self.vulnerable:,} people vulnerable"]


def infer(arguments: Mapping[str, object]) -> Disclosure:
    """Calls disclosure: for releases, or for a publication in its own session."""
    given = dict(arguments)
    releases = given["releases"]
    if isinstance(releases, Publication):
        session, given["releases"] = releases._session, Sql(NAME)
    else:
        session, entries = None, listed(releases)
        if not entries:
            raise Refused("disclosure: give at least one release", function="disclosure", argument="releases")
        private = given.get("strength") in _KNOW_GROUPS or given.get("p_match") is not None
        given["releases"] = [one.private if private and isinstance(one, Release) else one for one in entries]
        given["hierarchies"] = hierarchies_of(cast("Input | None", given.get("hierarchies")), entries)
    with Query(session) as query:
        return Disclosure(query.rows("disclosure", given))


class Comparison(Table):
    """Holds the costs of settings of methods."""

    def plot(self) -> Chart:
        """Draws loss, error of counts and counterfeits by the parameter that was varied."""
        rows = [row for row in self.to_pylist() if row["value"] is not None]
        shown = [
            ("loss", "What releases lose", "loss metric"),
            ("median_error", "How far counts are off", "median relative error"),
            ("counterfeits", "Counterfeits", "rows"),
        ]
        pictures = []
        for column, title, label in shown:
            lines: dict[str, list[tuple[float, float]]] = {}
            for row in rows:
                if row[column] is not None:
                    lines.setdefault(f"{row['method']}, {row['parameter']}", []).append((row["value"], row[column]))
            if lines:
                pictures.append(draw(title, "parameter", label, lines))
        return Chart(pictures)


def compare(
    data: Input,
    settings: Mapping[str, Mapping[str, object]],
    *,
    id: str | None = None,
    quasi: Columns | None = None,
    sensitive: Columns | None = None,
    hierarchies: Input | None = None,
    queries: int = 1000,
    selectivity: float = 0.1,
    seed: Seed | None = None,
) -> Comparison:
    """Makes a release with every setting, and measures it; none is kept.

    ``settings`` has the arguments of each method by its name; an argument that is a list is varied:
    ``{"m_invariant": {"m": [2, 5]}, "mondrian": {"k": [5]}}``. One row for each: ``method``, ``parameter`` and ``value`` (what was
    varied, or else the first), ``setting`` (all of it), ``rows``, ``groups``, ``counterfeits``, ``loss`` (the loss metric of all
    attributes; of ``muco`` the mean distance), ``median_error`` (the median relative error of random counts) and ``seconds``.
    """
    makers = [name for name, function in signatures().items() if function["releases"]]
    shared = {
        "input": read_once(data), "id": id, "quasi": quasi, "sensitive": sensitive, "hierarchies": read_once(hierarchies), "seed": seed,
    }
    lines = []
    for method, arguments in settings.items():
        if method not in makers:
            raise Refused(f"compare: there is no method {method}; there are {', '.join(makers)}", function="compare", argument="settings")
        varied = {name: listed(value) for name, value in arguments.items()}
        for values in itertools.product(*varied.values()):
            chosen = dict(zip(varied, values, strict=True))
            lines.append(_measured(method, chosen, varied, shared, queries, selectivity))
    columns = "method, parameter, value, setting, rows, groups, counterfeits, loss, median_error, seconds"
    if not lines:
        raise Refused("compare: give at least one setting", function="compare")
    with Query() as query:
        return Comparison(query.run(f"SELECT * FROM (VALUES {', '.join(lines)}) AS t({columns})"))


def _measured(
    method: str, chosen: Mapping[str, object], varied: Mapping[str, Sequence[object]], shared: Mapping[str, object], queries: int, selectivity: float
) -> str:
    known = parameters(method)
    arguments = {**{name: value for name, value in shared.items() if name in known}, **chosen}
    unknown = [name for name in arguments if name not in known]
    if unknown:
        raise Refused(f"{method}: unknown argument {unknown[0]}; it takes {', '.join(known)}", function=method, argument=unknown[0])
    begin = time.perf_counter()
    release = make(method, arguments)
    seconds = time.perf_counter() - begin
    totals = next(row for row in loss(cast("Input", shared["input"]), release).to_pylist() if row["attribute"] == "*")
    total = totals["lm"] if totals.get("lm") is not None else totals.get("distance")
    asked = {name: shared[name] for name in ("hierarchies", "seed")}
    asked.update({"original": shared["input"], "release": release, "queries": queries, "selectivity": selectivity})
    with Query() as query:
        call = f"query_accuracy({query.arguments('query_accuracy', asked)})"
        error = query.run(f"SELECT median(relative_error) AS it FROM {call}", f"compare: {method}").to_pylist()[0]["it"]
    several = [name for name, values in varied.items() if len(values) > 1] or list(varied)
    name = several[0] if several else ""
    value = chosen.get(name)
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    setting = ", ".join(f"{name} = {value}" for name, value in chosen.items())
    figures = [len(release), release.groups, release.counterfeits]
    counts = ", ".join(f"CAST({'NULL' if figure is None else figure} AS BIGINT)" for figure in figures)
    numbers = ", ".join(f"CAST({'NULL' if figure is None else repr(float(figure))} AS DOUBLE)" for figure in (total, error, seconds))
    first = f"CAST({'NULL' if number is None else number} AS DOUBLE)"
    return f"({text(method)}, {text(name)}, {first}, {text(setting)}, {counts}, {numbers})"
