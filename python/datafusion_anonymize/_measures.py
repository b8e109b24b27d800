"""What readers can infer, and what settings cost."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ._chart import Chart, draw
from ._errors import Refused
from ._input import is_path, read
from ._publication import Publication
from ._release import Release, loss, make, makers
from ._sql import Query, kinds, text
from ._table import Table
from ._types import Columns, Input, Seed

#: Readers who know which group holds each person: they are shown private views.
_KNOW_GROUPS = ("group", "joint")


class Disclosure(Table):
    """What a reader can infer about everybody."""

    @property
    def max_risk(self) -> float | None:
        """The greatest probability of a true value (the re-publication risk)."""
        return cast("float | None", self._one("max(risk)"))

    @property
    def vulnerable(self) -> int:
        """People of whom only one value is left in some release."""
        return cast(int, self._one(f"count(DISTINCT {self._person()}) FILTER (WHERE vulnerable)"))

    def plot(self) -> Chart:
        """How many people have at least each risk, release by release."""
        query = "SELECT release, risk, count(*) AS people FROM {table} WHERE risk IS NOT NULL GROUP BY release, risk ORDER BY release, risk DESC"
        lines: dict[str, list[tuple[float, float]]] = {}
        for row in self._asked(query).to_pylist():
            line = lines.setdefault(f"release {row['release']}", [])
            line.append((row["risk"], row["people"] + (line[-1][1] if line else 0)))
        return Chart([draw("What a reader can infer", "risk", "people with at least this risk", lines)])

    def _person(self) -> str:
        name = self.columns[0].replace('"', '""')
        return f'"{name}"'

    def _one(self, what: str) -> Any:
        return next(iter(self._asked(f"SELECT {what} AS it FROM {{table}}").to_pylist()))["it"]

    def _asked(self, query: str) -> Table:
        with Query() as asked:
            return Table(asked.run(query.replace("{table}", asked.table(self))))

    def _summary(self) -> list[str]:
        if "risk" not in self.columns:
            return super()._summary()
        risk = self.max_risk
        shown = "none" if risk is None else f"{risk:.3f}"
        return [f"{len(self):,} rows: greatest risk {shown}, {self.vulnerable:,} people vulnerable"]


def infer(arguments: Mapping[str, object]) -> Disclosure:
    """Calls disclosure."""
    given = dict(arguments)
    releases = given["releases"]
    if isinstance(releases, Publication):
        session = releases._session
    else:
        session = None
        private = given.get("strength") in _KNOW_GROUPS or given.get("p_match") is not None
        several = isinstance(releases, Sequence) and not isinstance(releases, (str, bytes))
        listed = list(cast("Sequence[object]", releases)) if several else [releases]
        if not listed:
            raise Refused("disclosure: give at least one release", function="disclosure", argument="releases")
        shown = [one.private if private and isinstance(one, Release) else one for one in listed]
        given["releases"] = shown if len(shown) > 1 else shown[0]
        if given.get("hierarchies") is None:
            known = (one._hierarchies for one in listed if isinstance(one, Release))
            given["hierarchies"] = next((one for one in known if one is not None), None)
    with Query(session) as query:
        return Disclosure(query.run(f"SELECT * FROM {query.call('disclosure', given)}", "disclosure", 5))


class Comparison(Table):
    """What settings of methods cost."""

    def plot(self) -> Chart:
        """Loss, error of counts and counterfeits by the parameter that was varied."""
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

    ``settings`` has a method's arguments by its name; an argument that is a list is varied:
    ``{"m_invariant": {"m": [2, 5]}, "mondrian": {"k": [5]}}``. One row for each: ``method``, ``parameter`` and ``value`` (what was
    varied, or else the first), ``setting`` (all of it), ``rows``, ``groups``, ``counterfeits``, ``loss`` (the loss metric of all
    attributes; of ``muco`` the mean distance), ``median_error`` (the median relative error of random counts) and ``seconds``.
    """
    table: Input = data if is_path(data) else Table(read(data))
    tree = hierarchies if hierarchies is None or is_path(hierarchies) else Table(read(hierarchies))
    lines = []
    for method, arguments in settings.items():
        if method not in makers():
            raise Refused(f"compare: there is no method {method}; there are {', '.join(makers())}", function="compare")
        varied = {name: _several(value) for name, value in arguments.items()}
        for values in itertools.product(*varied.values()):
            chosen = dict(zip(varied, values))
            lines.append(_measured(method, chosen, varied, table, tree, id, quasi, sensitive, queries, selectivity, seed))
    columns = "method, parameter, value, setting, rows, groups, counterfeits, loss, median_error, seconds"
    if not lines:
        raise Refused("compare: give at least one setting", function="compare")
    with Query() as query:
        return Comparison(query.run(f"SELECT * FROM (VALUES {', '.join(lines)}) AS t({columns})"))


def _several(value: object) -> Sequence[object]:
    return list(value) if isinstance(value, (list, tuple, range)) else [value]


def _measured(
    method: str, chosen: Mapping[str, object], varied: Mapping[str, Sequence[object]], table: Input, tree: Input | None,
    id: str | None, quasi: Columns | None, sensitive: Columns | None, queries: int, selectivity: float, seed: Seed | None,
) -> str:
    known = kinds(method)
    shared = {"id": id, "quasi": quasi, "sensitive": sensitive, "hierarchies": tree, "seed": seed}
    arguments = {"input": table, **{name: value for name, value in shared.items() if name in known}, **chosen}
    unknown = [name for name in arguments if name not in known]
    if unknown:
        raise Refused(f"{method}: unknown argument {unknown[0]}; it takes {', '.join(known)}", function=method, argument=unknown[0])
    begin = time.perf_counter()
    release = make(method, arguments)
    seconds = time.perf_counter() - begin
    totals = next(row for row in loss(table, release).to_pylist() if row["attribute"] == "*")
    total = totals["lm"] if totals.get("lm") is not None else totals.get("distance")
    with Query() as query:
        asked = {"original": table, "release": release, "queries": queries, "selectivity": selectivity, "hierarchies": tree, "seed": seed}
        call = query.call("query_accuracy", asked)
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
