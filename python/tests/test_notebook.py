"""The notebooks of the examples run from top to bottom."""

from __future__ import annotations

import pathlib

import pytest

from shared import ROOT

EXAMPLES = ROOT / "python" / "examples"


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.ipynb")))
def test_a_notebook_runs(name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    import sys

    # The kernel is this Python.
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    monkeypatch.setenv("JUPYTER_PATH", f"{sys.prefix}/share/jupyter")
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "notebooks are kept without outputs"
    done = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in done.cells if cell.cell_type == "code" for output in cell.outputs]
    pages = ["".join(output.data.get("text/html", "")) for output in shown if "data" in output]
    assert any("<table>" in page and "m_invariant" in page for page in pages)
    assert sum("<svg" in page for page in pages) >= 3
