"""What the tests share."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

import datafusion_anonymize as an
from shared import DATA, ROOT


@pytest.fixture(scope="session")
def q1() -> an.Table:
    return an.connect().sql(f"SELECT * FROM '{DATA}/patients_q1.parquet'")


@pytest.fixture(scope="session")
def q2() -> an.Table:
    return an.connect().sql(f"SELECT * FROM '{DATA}/patients_q2.parquet'")


@pytest.fixture(scope="session")
def people() -> an.Table:
    return an.census(5000, seed=1)


@pytest.fixture(scope="session")
def shell() -> Path:
    """The shell, which CI has built before."""
    found = Path(os.environ.get("ANONYMIZE_SHELL", ROOT / "target" / "release" / "anonymize"))
    if not found.exists():
        if os.environ.get("ANONYMIZE_PYTHON") == "require":
            pytest.fail(f"the shell is not at {found}: cargo build --release")
        pytest.skip("the shell has not been built")
    return found


@pytest.fixture(autouse=True)
def _strict() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Of other libraries.
        for category in (DeprecationWarning, FutureWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("default", category)
        # A second release of small tables has as many new people as are missing.
        warnings.filterwarnings("default", message=".*is not written as it was", category=an.Notice)
        yield
