"""Every Python block of docs/python.md and README.md runs, in one session per page and in a folder of its own; an ``output`` block that follows is
what it printed. ANONYMIZE_BLESS=1 writes these."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import sys
import types
import warnings

import pytest

import datafusion_anonymize as an
from shared import ROOT


class Skip(Exception):
    """What a task of Airflow raises not to be run again."""


def airflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow itself is not installed: what the page uses of it."""
    sdk, exceptions = types.ModuleType("airflow.sdk"), types.ModuleType("airflow.exceptions")
    sdk.task = lambda **_: lambda function: function  # type: ignore[attr-defined]
    exceptions.AirflowFailException = Skip  # type: ignore[attr-defined]
    for name, module in {"airflow": types.ModuleType("airflow"), "airflow.sdk": sdk, "airflow.exceptions": exceptions}.items():
        monkeypatch.setitem(sys.modules, name, module)


class Dbt:
    """What a model uses of dbt."""

    def __init__(self, tables: dict[str, object]) -> None:
        self._tables = tables

    def config(self, **_: object) -> None:
        pass

    def ref(self, name: str) -> object:
        return self._tables[name]


@pytest.mark.parametrize("page", ["docs/python.md", "python/README.md"])
def test_every_block_runs(page: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("pandas", "polars", "pyarrow", "duckdb"):
        pytest.importorskip(library)
    airflow(monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake").mkdir()
    (tmp_path / "private").mkdir()
    parts = (ROOT / page).read_text().split("```")
    names: dict[str, object] = {"__name__": "page"}
    printed, blocks = "", 0
    for place in range(1, len(parts), 2):
        language, _, code = parts[place].partition("\n")
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(code, f"{page}, block {place // 2 + 1}", "exec"), names)
            printed = out.getvalue()
            blocks += 1
        elif language == "output":
            if os.environ.get("ANONYMIZE_BLESS"):
                parts[place] = f"output\n{printed}"
            else:
                assert printed == code, page
    if os.environ.get("ANONYMIZE_BLESS"):
        (ROOT / page).write_text("```".join(parts))
    assert blocks >= 1
    if page == "docs/python.md":
        models(names)


def models(names: dict[str, object]) -> None:
    """The functions of pipelines do what they say."""
    import duckdb

    people = names["people"]
    assert isinstance(people, an.Table)
    for place in ("lake/wards/", "lake/clinic/"):
        who = {"id": "person_id", "quasi": ["age", "education"], "sensitive": "occupation"}
        an.publication(place, method="m_invariant", m=5, schema=people, begin=True, **who).insert(people)  # type: ignore[arg-type]
    connection = duckdb.connect()
    connection.register("patients", people.to_arrow())
    # The same people again, which publishes nothing and says so.
    warnings.filterwarnings("ignore", category=an.Notice)
    relation = names["model"](Dbt({"patients": connection.table("patients")}), connection)  # type: ignore[operator]
    assert relation.count("*").fetchall()[0][0] == 2000 and "age_lo" in relation.columns
    people.write_parquet("lake/people.parquet")
    assert names["publish"]("lake/people.parquet") == 1  # type: ignore[operator]
    people.to_polars().with_columns(occupation=1).write_parquet("lake/alike.parquet")
    with pytest.raises(Skip):
        names["publish"]("lake/alike.parquet")  # type: ignore[operator]
