"""What is shown while something takes long."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import pytest

import datafusion_anonymize as an
from shared import CENSUS


@pytest.fixture
def shown() -> Iterator[None]:
    an.set_progress(True)
    yield
    an.set_progress(None)


def test_a_line_in_terminals(shown: None, capsys: pytest.CaptureFixture[str]) -> None:
    lines: list[str] = []
    # Of what is quick, nothing is shown; how many rows that are depends on the machine.
    for rows in [1_000_000, 2_000_000, 4_000_000, 8_000_000, 16_000_000]:
        an.m_distinct(an.census(rows, seed=1), m=5, updates="any", **CENSUS)
        lines = capsys.readouterr().err.split("\r\x1b[2K")
        if len(lines) > 1:
            break
    assert any(line.startswith("m_distinct: ") and line.endswith(" s") for line in lines), lines
    assert lines[-1] == "", "it is cleared at the end"


def test_a_bar_where_the_share_is_known(shown: None, capsys: pytest.CaptureFixture[str]) -> None:
    an.advise(an.census(3000, seed=1), queries=200, seed=1, **CENSUS)
    text = capsys.readouterr().err
    assert "settings measured" in text and "[#" in text and text.endswith("\r\x1b[2K")


def test_nothing_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    an.advise(an.census(3000, seed=1), queries=200, seed=1, **CENSUS)
    assert capsys.readouterr().err == ""
    an.set_progress(False)
    an.m_invariant(an.census(1000), m=5, **CENSUS)
    an.set_progress(None)


def test_a_bar_in_notebooks() -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cell = """
        import datafusion_anonymize as an
        import IPython.display
        seen, HTML = [], IPython.display.HTML
        IPython.display.HTML = lambda text: seen.append(text) or HTML(text)
        advice = an.advise(an.census(3000, seed=1), queries=200, seed=1, id="person_id", quasi=["age", "gender"], sensitive="occupation")
        print(any("<progress value=" in text and "settings measured" in text for text in seen), repr(seen[-1]))
    """
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(textwrap.dedent(cell))])
    done = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    printed = [output.text for output in done.cells[0].outputs if output.output_type == "stream"]
    assert printed == ["True ''\n"]
