"""Modules of the package use those below them only, also where types are checked and in functions."""

from __future__ import annotations

import ast
import graphlib
import pathlib

import pytest

from shared import ROOT


def imports(source: str) -> set[str]:
    """Returns the modules of the package that a module imports."""
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) and node.level == 1]
    return {name for node in found for name in ([node.module] if node.module else [alias.name for alias in node.names])}


def order(package: dict[str, str]) -> list[str]:
    """Returns the modules from bottom to top."""
    return list(graphlib.TopologicalSorter({name: imports(source) for name, source in package.items()}).static_order())


def test_there_is_no_circle() -> None:
    files = pathlib.Path(ROOT / "python" / "datafusion_anonymize").glob("*.py")
    modules = order({file.stem: file.read_text() for file in files})
    assert modules[-1] == "__init__" and modules.index("_sql") < modules.index("_publication")


def test_a_circle_is_found() -> None:
    lazily = "def table():\n    from ._publication import Publication\n"
    with pytest.raises(graphlib.CycleError):
        order({"_sql": lazily, "_publication": "from . import _native, _sql\n"})
