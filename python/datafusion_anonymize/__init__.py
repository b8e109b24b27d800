"""Anonymized publication of tables of people: releases that stay safe beside all earlier ones.

    import datafusion_anonymize as an

    release = an.m_invariant(people, m=5, id="person_id", quasi=["age", "zip"], sensitive="disease")
    release.to_pandas()

Each method is a function that returns a Release. A release was drawn once and is kept: it is the public view, and ``.private`` is the publisher's.
Guarantees, and their limits, are those of the SQL function of the same name.
"""

from ._chart import Chart
from ._connection import Connection, connect
from ._errors import AnonymizeError, Breach, Conflict, Notice, Refused
from ._functions import (
    advise,
    anatomy,
    census,
    disclosure,
    dynamic,
    m_distinct,
    m_invariant,
    mondrian,
    muco,
    non_sequential,
    profile,
    publication,
    query_accuracy,
    reposition,
    sequential_release,
    sequential_worlds,
)
from ._measures import Comparison, Disclosure, compare
from ._native import VERSION as __version__
from ._progress import set_progress
from ._publication import Audit, Inserted, Publication
from ._release import Loss, Release, estimate, loss
from ._sql import Composite, composite
from ._table import Table

__all__ = [
    "AnonymizeError",
    "Audit",
    "Breach",
    "Chart",
    "Comparison",
    "Composite",
    "Conflict",
    "Connection",
    "Disclosure",
    "Inserted",
    "Loss",
    "Notice",
    "Publication",
    "Refused",
    "Release",
    "Table",
    "__version__",
    "advise",
    "anatomy",
    "census",
    "compare",
    "composite",
    "connect",
    "disclosure",
    "dynamic",
    "estimate",
    "loss",
    "m_distinct",
    "m_invariant",
    "mondrian",
    "muco",
    "non_sequential",
    "profile",
    "publication",
    "query_accuracy",
    "reposition",
    "sequential_release",
    "sequential_worlds",
    "set_progress",
]
