"""Functions with the arguments that the library declares: written by python/generate.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ._measures import Disclosure, Releases, infer
from ._publication import Publication, open_publication
from ._release import Release, make
from ._sql import Query
from ._table import Table
from ._types import Columns, Input, Inputs, Length, Place, Seed


def _table(function: str, arguments: dict[str, Any]) -> Table:
    with Query() as query:
        return Table(query.rows(function, arguments))


def m_invariant(
    input: Input,
    m: int,
    *,
    id: str | None = None,
    quasi: Columns | None = None,
    sensitive: Columns | None = None,
    previous: Inputs | None = None,
    groups: Literal["close", "cohort"] | None = None,
    reader: Literal["stranger", "participant"] | None = None,
    region: int | None = None,
    balance: Literal["blind", "minimal"] | None = None,
    on_ineligible: Literal["refuse", "counterfeit", "withhold"] | None = None,
    seed: Seed | None = None,
    hierarchies: Input | None = None,
    within: str | None = None,
    cells: int | Literal["auto"] | None = None,
    assignment: Literal["eligible", "drawn"] | None = None,
    domain: Input | None = None,
) -> Release:
    """Returns a release of people who come and go, safe beside all earlier releases (m-invariance).

    Example:
        an.m_invariant(patients, m=10, id="patient_id", quasi=["age", "zip"], sensitive="disease")

    Args:
        input: the table, or the path or URL of a file
        m: least number of different sensitive values in a group: the bound is 1/m
        id: the identifier: one row per person. Never published [the columns' metadata]
        quasi: quasi-identifiers: known to others, published as ranges [the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; several are hidden each by itself, or as
            composite(a, b) [the columns' metadata]
        previous: the earlier releases: the last one, which knows those before it, or a list in their order; paths
            are stored private views
        groups: who shares a group: neighbours who come together, for ever; or people of the whole table, grouped
            anew for every release (the paper's) ["close"]
        reader: for whom the bound holds: a reader who knows nobody's value, or also one who knows their own and
            others' values ["stranger"]
        region: with groups "close", least number of people of a region, whose people are grouped anew for every
            release: fewer counterfeits, wider ranges [none: groups stay]
        balance: with groups "cohort", who fills gaps: counterfeits only, which tells nothing, or new rows where
            they can, with fewer counterfeits ["blind"]
        on_ineligible: when one value makes up more than 1/m of the new rows; the last two give people away
            ["refuse"]
        seed: a long secret text, for reproducible runs [drawn]
        hierarchies: table of attribute, leaf, level1, level2, ..: what values generalize to
        within: each value of this column is anonymized as a table of its own
        cells: in how many parts a release is made, one after the other, so that none is larger than memory (or
            "auto") ["auto"]
        assignment: new rows get signatures all together, and must be eligible; or each draws one by the shares of
            the first release ["eligible"]
        domain: with "drawn": all values that can ever come, also those that the first release has not
    """
    return make("m_invariant", locals())


def m_distinct(
    input: Input,
    m: int,
    *,
    id: str | None = None,
    quasi: Columns | None = None,
    sensitive: Columns | None = None,
    updates: Literal["any"] | Input | None = None,
    previous: Inputs | None = None,
    disjoint: bool | None = None,
    close_updates: bool | None = None,
    exact: bool | None = None,
    balance: Literal["minimal", "blind"] | None = None,
    on_ineligible: Literal["refuse", "counterfeit", "withhold"] | None = None,
    seed: Seed | None = None,
    hierarchies: Input | None = None,
    within: str | None = None,
    cells: int | Literal["auto"] | None = None,
) -> Release:
    """Returns a release of people who come and go and whose sensitive values change (m-Distinct).

    Example:
        an.m_distinct(patients, m=10, id="patient_id", quasi=["age", "zip"], sensitive="disease")

    Args:
        input: the table, or the path or URL of a file
        m: least number of values that stay possible for everybody
        id: the identifier: one row per person. Never published [the columns' metadata]
        quasi: quasi-identifiers: known to others, published as ranges [the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; several are hidden each by itself, or as
            composite(a, b) [the columns' metadata]
        updates: table of from_value, to_value and perhaps probability: what values can become [no value can change]
        previous: the earlier releases: the last one, which knows those before it, or a list in their order; paths
            are stored private views
        disjoint: True: values of a first group can never become alike (m-Distinct*) [False]
        close_updates: True adds the pairs that are missing for transitivity [False]
        exact: True: nobody's value is likelier than 1/m, also to who knows this program and the probabilities in
            updates [False]
        balance: who fills gaps: as few counterfeits as possible, or without regard to who is new ["minimal"]
        on_ineligible: when one value makes up more than 1/m of the new rows; the last two give people away
            ["refuse"]
        seed: a long secret text, for reproducible runs [drawn]
        hierarchies: table of attribute, leaf, level1, level2, ..: what values generalize to
        within: each value of this column is anonymized as a table of its own
        cells: in how many parts a release is made, one after the other, so that none is larger than memory (or
            "auto") ["auto"]
    """
    return make("m_distinct", locals())


def dynamic(
    input: Input,
    m: int,
    *,
    id: str | None = None,
    quasi: Columns | None = None,
    sensitive: Columns | None = None,
    updates: Literal["any"] | Input | None = None,
    previous: Inputs | None = None,
    seed: Seed | None = None,
    hierarchies: Input | None = None,
    within: str | None = None,
    cells: int | Literal["auto"] | None = None,
) -> Release:
    """Returns a release of people who come and go, whose values may change, with other columns each time; safe beside all earlier ones.

    Example:
        an.dynamic(patients, m=10, id="patient_id", quasi=["age", "zip"], sensitive="disease")

    Args:
        input: the table, or the path or URL of a file
        m: least number of different sensitive values in a group: the bound is 1/m
        id: the identifier: one row per person. Never published [the columns' metadata]
        quasi: quasi-identifiers: known to others, published as ranges [the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; several are hidden each by itself, or as
            composite(a, b) [the columns' metadata]
        updates: table of from_value, to_value and probability: what values can become, by which law [no value can
            change]
        previous: the earlier releases: the last one, which knows those before it, or a list in their order; paths
            are stored private views
        seed: a long secret text, for reproducible runs [drawn]
        hierarchies: table of attribute, leaf, level1, level2, ..: what values generalize to
        within: each value of this column is anonymized as a table of its own
        cells: in how many parts a release is made, one after the other, so that none is larger than memory (or
            "auto") ["auto"]
    """
    return make("dynamic", locals())


def mondrian(
    input: Input,
    *,
    k: int | None = None,
    l: int | None = None,
    quasi: Columns | None = None,
    sensitive: Columns | None = None,
    diversity: Literal["frequency", "distinct", "entropy"] | None = None,
    t: float | None = None,
    hierarchies: Input | None = None,
    within: str | None = None,
    cuts: Literal["tight", "median", "fair"] | None = None,
    id: str | None = None,
    seed: Seed | None = None,
    insensitive: Columns | None = None,
    cells: int | Literal["auto"] | None = None,
) -> Release:
    """Returns one release with ranges: k-anonymity, l-diversity, t-closeness.

    Example:
        an.mondrian(patients, k=10, quasi=["age", "zip"], sensitive="disease", id="patient_id")

    Args:
        input: the table, or the path or URL of a file
        k: least number of rows in a group
        l: diversity of a group's sensitive values
        quasi: quasi-identifiers: known to others, published as ranges [the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; several are hidden each by itself, or as
            composite(a, b) [the columns' metadata]
        diversity: what l means ["frequency"]
        t: greatest distance of a group's sensitive values from the table's, 0 to 1
        hierarchies: table of attribute, leaf, level1, level2, ..: what values generalize to
        within: each value of this column is anonymized as a table of its own
        cuts: where groups are: where least is lost, at the median of the widest column, or so that cuts tell
            nothing of values ["tight"]
        id: the identifier: one row per person. Never published [the columns' metadata]
        seed: a long secret text, for reproducible runs [drawn]
        insensitive: columns to keep as they are; whoever knows them of somebody finds the row by them
        cells: in how many parts a release is made, one after the other, so that none is larger than memory (or
            "auto") ["auto"]
    """
    return make("mondrian", locals())


def anatomy(
    input: Input,
    l: int,
    *,
    quasi: Columns | None = None,
    sensitive: Columns | None = None,
    within: str | None = None,
    id: str | None = None,
    groups: Literal["cohort", "close"] | None = None,
    reader: Literal["stranger", "participant"] | None = None,
    previous: Inputs | None = None,
    seed: Seed | None = None,
    insensitive: Columns | None = None,
    cells: int | Literal["auto"] | None = None,
) -> Release:
    """Returns a release with exact quasi-identifiers beside the sensitive values of their group.

    Example:
        an.anatomy(patients, l=5, quasi=["age", "zip"], sensitive="disease", id="patient_id")

    Args:
        input: the table, or the path or URL of a file
        l: no sensitive value makes up more than 1/l of a group
        quasi: quasi-identifiers: known to others, published as ranges [the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; several are hidden each by itself, or as
            composite(a, b) [the columns' metadata]
        within: each value of this column is anonymized as a table of its own
        id: the identifier: one row per person. Never published [the columns' metadata]
        groups: who shares a group: people of the whole table, in one release; or neighbours who come together, for
            ever, so that people may be in several releases ["cohort"]
        reader: with groups "close", for whom the bound holds: a reader who knows nobody's value, or also one who
            knows their own and others' values ["stranger"]
        previous: the earlier releases: the last one, which knows those before it, or a list in their order; paths
            are stored private views
        seed: a long secret text, for reproducible runs [drawn]
        insensitive: columns to keep as they are; whoever knows them of somebody finds the row by them
        cells: in how many parts a release is made, one after the other, so that none is larger than memory (or
            "auto") ["auto"]
    """
    return make("anatomy", locals())


def muco(
    input: Input,
    delta: float | Literal["equal"],
    *,
    l: int | None = None,
    quasi: Columns | None = None,
    sensitive: Columns | None = None,
    hierarchies: Input | None = None,
    within: str | None = None,
    cuts: Literal["tight", "median", "fair"] | None = None,
    id: str | None = None,
    reader: Literal["stranger", "participant"] | None = None,
    seed: Seed | None = None,
    insensitive: Columns | None = None,
    cells: int | Literal["auto"] | None = None,
) -> Release:
    """Returns one release whose rows still look like rows (mutual cover).

    Example:
        an.muco(patients, delta=0.2, quasi=["age", "zip"], sensitive="disease", id="patient_id")

    Args:
        input: the table, or the path or URL of a file
        delta: no row contributes more than this share to the probability of a published value; "equal": all rows of
            a group the same
        l: least number of rows in a group, all with different sensitive values [what delta needs]
        quasi: quasi-identifiers: known to others, published as ranges [the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; several are hidden each by itself, or as
            composite(a, b) [the columns' metadata]
        hierarchies: table of attribute, leaf, level1, level2, ..: what values generalize to
        within: each value of this column is anonymized as a table of its own
        cuts: where groups are: where least is lost, at the median of the widest column, or so that cuts tell
            nothing of values ["tight"]
        id: the identifier: one row per person. Never published [the columns' metadata]
        reader: with delta "equal", for whom the bound holds: a reader who knows nobody's value, or also one who
            knows their own and others' values ["stranger"]
        seed: a long secret text, for reproducible runs [drawn]
        insensitive: columns to keep as they are; whoever knows them of somebody finds the row by them
        cells: in how many parts a release is made, one after the other, so that none is larger than memory (or
            "auto") ["auto"]
    """
    return make("muco", locals())


def sequential_release(
    input: Input,
    worlds: Input,
    *,
    id: str | None = None,
    quasi: Columns | None = None,
    sensitive: Columns | None = None,
    other: Columns | None = None,
    p: int | None = None,
    loss: Literal["lm", "em"] | None = None,
    hierarchies: Input | None = None,
    seed: Seed | None = None,
) -> Release:
    """Returns a release of some columns, safe beside releases of other columns of the same people.

    Example:
        an.sequential_release(patients, worlds, id="patient_id", quasi=["age", "zip"], sensitive="disease")

    Args:
        input: the table, or the path or URL of a file
        worlds: what sequential_worlds returned
        id: the identifier: one row per person. Never published [the columns' metadata]
        quasi: quasi-identifiers: known to others, published as ranges [the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; several are hidden each by itself, or as
            composite(a, b) [the columns' metadata]
        other: columns that no reader knows; they travel with the sensitive value
        p: most rows that are matched exactly at a time, up to 1000 [100]
        loss: what is kept small: the loss metric, or the entropy ["lm"]
        hierarchies: table of attribute, leaf, level1, level2, ..: what values generalize to
        seed: a long secret text, for reproducible runs [drawn]
    """
    return make("sequential_release", locals())


def non_sequential(
    input: Input,
    l: int,
    *,
    quasi: Columns | None = None,
    sensitive: Columns | None = None,
    other: Columns | None = None,
    cuts: Literal["tight", "median"] | None = None,
    hierarchies: Input | None = None,
    id: str | None = None,
    seed: Seed | None = None,
) -> Release:
    """Returns the baseline of sequential_release: one release whose projections are published.

    Example:
        an.non_sequential(patients, l=5, quasi=["age", "zip"], sensitive="disease", id="patient_id")

    Args:
        input: the table, or the path or URL of a file
        l: people that every row covers, with different sensitive values
        quasi: quasi-identifiers: known to others, published as ranges [the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; several are hidden each by itself, or as
            composite(a, b) [the columns' metadata]
        other: columns that no reader knows; they travel with the sensitive value
        cuts: where groups are: where least is lost, or at the median of the widest column ["tight"]
        hierarchies: table of attribute, leaf, level1, level2, ..: what values generalize to
        id: the identifier: one row per person. Never published [the columns' metadata]
        seed: a long secret text, for reproducible runs [drawn]
    """
    return make("non_sequential", locals())


def sequential_worlds(
    input: Input,
    l: int,
    *,
    id: str | None = None,
    quasi: Columns | None = None,
    sensitive: Columns | None = None,
    other: Columns | None = None,
    worlds: Input | None = None,
    cuts: Literal["tight", "median"] | None = None,
    hierarchies: Input | None = None,
    seed: Seed | None = None,
) -> Table:
    """Returns what sequential_release needs: other worlds, equally possible to a reader; made once and kept.

    Example:
        an.sequential_worlds(patients, l=5, id="patient_id", quasi=["age", "zip"], sensitive="disease")

    Args:
        input: the table, or the path or URL of a file
        l: how many worlds there are, the true one included: the bound is 1/l
        id: the identifier: one row per person. Never published [the columns' metadata]
        quasi: quasi-identifiers: known to others, published as ranges [the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; several are hidden each by itself, or as
            composite(a, b) [the columns' metadata]
        other: columns that no reader knows; they travel with the sensitive value
        worlds: what it returned before: only new people get worlds
        cuts: where groups are: where least is lost, or at the median of the widest column ["tight"]
        hierarchies: table of attribute, leaf, level1, level2, ..: what values generalize to
        seed: a long secret text, for reproducible runs [drawn]
    """
    return _table("sequential_worlds", locals())


def reposition(
    input: Input,
    l: int,
    time: str,
    window: int,
    *,
    sensitive: Columns | None = None,
    every: Length | None = None,
    move_cost: Literal["linear", "quadratic"] | None = None,
    move_factor: float | None = None,
    suppress_cost: float | Input | None = None,
    late: Literal["refuse", "suppress"] | None = None,
    finish: bool | None = None,
    seed: Seed | None = None,
    private: bool | None = None,
) -> Table:
    """Returns a stream of small skewed snapshots made eligible, by publishing some records late.

    Example:
        an.reposition(patients, l=4, time="day", window=7, sensitive="disease")

    Args:
        input: the table, or the path or URL of a file
        l: no sensitive value makes up more than 1/l of a snapshot
        time: a date, a timestamp or a number: what snapshots are cut by
        window: snapshots that are held back
        sensitive: published as it is, but nobody can tell whose it is; several are hidden each by itself, or as
            composite(a, b) [the columns' metadata]
        every: length of a snapshot [1 day, or 1]
        move_cost: what publishing snapshots late costs ["linear"]
        move_factor: times this [1]
        suppress_cost: what not publishing a record costs: a number, or value and cost [as moving it by window]
        late: what becomes of rows of a closed snapshot ["refuse"]
        finish: True publishes the last window, too [False]
        seed: a long secret text, for reproducible runs [drawn]
        private: True adds the original time and the status [False]
    """
    return _table("reposition", locals())


def profile(
    input: Input,
    *,
    id: str | None = None,
    quasi: Columns | None = None,
    sensitive: Columns | None = None,
) -> Table:
    """Returns facts of a table before it is anonymized: who is singled out, suggested roles, the largest m.

    Example:
        an.profile(patients, id="patient_id", quasi=["age", "zip"], sensitive="disease")

    Args:
        input: the table, or the path or URL of a file
        id: the identifier: one row per person. Never published [the columns' metadata]
        quasi: quasi-identifiers: known to others, published as ranges [the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; several are hidden each by itself, or as
            composite(a, b) [the columns' metadata]
    """
    return _table("profile", locals())


def advise(
    input: Input,
    *,
    id: str | None = None,
    quasi: Columns | None = None,
    sensitive: Columns | None = None,
    error: float | None = None,
    rows: int | None = None,
    queries: int | None = None,
    seed: Seed | None = None,
) -> Table:
    """Returns what each method and setting costs on a table, measured; which to take, and the SQL.

    Example:
        an.advise(patients, id="patient_id", quasi=["age", "zip"], sensitive="disease")

    Args:
        input: the table, or the path or URL of a file
        id: the identifier: one row per person [suggested by profile]
        quasi: quasi-identifiers: known to others [suggested by profile]
        sensitive: what nobody should learn [suggested by profile]
        error: the median relative error of counts that is acceptable [0.1]
        rows: how many rows are measured, drawn at random [200000]
        queries: random queries of each setting [1000]
        seed: a long secret text, for reproducible runs [drawn]
    """
    return _table("advise", locals())


def query_accuracy(
    original: Input,
    release: Input,
    *,
    queries: int | None = None,
    selectivity: float | None = None,
    aggregate: Literal["count", "sum", "avg"] | None = None,
    predicates: int | None = None,
    hierarchies: Input | None = None,
    distribution: Literal["fitted", "uniform"] | None = None,
    prior: Input | None = None,
    seed: Seed | None = None,
) -> Table:
    """Returns random queries of a table and its release, and how far estimates are off.

    Example:
        an.query_accuracy(patients, "release.parquet")

    Args:
        original: the table
        release: a release of it
        queries: how many [10000]
        selectivity: share of the table that a query would select if values were uniform [0.1]
        aggregate: what is asked; sum and avg of the sensitive attribute ["count"]
        predicates: how many quasi-identifiers have a range [all]
        hierarchies: table of attribute, leaf, level1, level2, ..: what values generalize to
        distribution: how values lie in ranges: as the ends of all ranges do, and somebody at each end, or evenly
            ["fitted"]
        prior: table of attribute, value, share: how values are distributed, if that is known from elsewhere
        seed: a long secret text, for reproducible runs [drawn]
    """
    return _table("query_accuracy", locals())


def census(
    rows: int,
    *,
    seed: int | None = None,
) -> Table:
    """Returns synthetic census microdata.

    Example:
        an.census(rows=100000)

    Args:
        rows: how many people
        seed: the same seed, the same people [0]
    """
    return _table("census", locals())


def disclosure(
    releases: Releases,
    *,
    original: Input | None = None,
    background: Input | None = None,
    id: str | None = None,
    quasi: Columns | None = None,
    sensitive: Columns | None = None,
    strength: Literal["cover", "group", "joint", "joint_cover"] | None = None,
    updates: Literal["any"] | Input | None = None,
    hierarchies: Input | None = None,
    p_match: float | None = None,
    facts: Input | None = None,
    budget: int | None = None,
) -> Disclosure:
    """Returns what a reader of releases can infer about everybody.

    Example:
        an.disclosure([release1, release2], original=patients, id="patient_id", quasi=["age", "zip"],
            sensitive="disease")

    Args:
        releases: a release, a list of several, or a publication
        original: what the reader knows, and the true sensitive values [background]
        background: what the reader knows: identifiers and quasi-identifiers [original]
        id: the identifier: one row per person. Never published [the columns' metadata]
        quasi: quasi-identifiers: known to others, published as ranges [the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; several are hidden each by itself, or as
            composite(a, b) [the columns' metadata]
        strength: what the reader knows of groups ["cover"]
        updates: table of from_value, to_value and perhaps probability: what values can become [no value can change]
        hierarchies: table of attribute, leaf, level1, level2, ..: what values generalize to
        p_match: for rows that look like rows: the chance that a quasi-identifier is looked at
        facts: what else the reader knows: identifier, sensitive value and perhaps release [nothing]
        budget: decisions of the solver for each part of a joint inference; what is not found out is undecided
            [20000000]
    """
    return infer(locals())


def publication(
    location: Place,
    *,
    method: Literal["m_invariant", "m_distinct", "dynamic", "mondrian", "anatomy", "muco", "sequential", "reposition"] | None = None,
    schema: Input | None = None,
    begin: bool | None = None,
    private: Place | None = None,
    moved_from: Place | None = None,
    allow_independent_releases: bool | None = None,
    allow_repeated_snapshots: bool | None = None,
    max_missing: float | None = None,
    m: int | None = None,
    id: str | None = None,
    quasi: Columns | None = None,
    sensitive: Columns | None = None,
    groups: Literal["close", "cohort"] | None = None,
    reader: Literal["stranger", "participant"] | None = None,
    region: int | None = None,
    balance: Literal["blind", "minimal"] | None = None,
    on_ineligible: Literal["refuse", "counterfeit", "withhold"] | None = None,
    hierarchies: Input | None = None,
    within: str | None = None,
    cells: int | Literal["auto"] | None = None,
    assignment: Literal["eligible", "drawn"] | None = None,
    domain: Input | None = None,
    updates: Literal["any"] | Input | None = None,
    disjoint: bool | None = None,
    close_updates: bool | None = None,
    exact: bool | None = None,
    k: int | None = None,
    l: int | None = None,
    diversity: Literal["frequency", "distinct", "entropy"] | None = None,
    t: float | None = None,
    cuts: Literal["tight", "median", "fair"] | None = None,
    insensitive: Columns | None = None,
    delta: float | Literal["equal"] | None = None,
    other: Columns | None = None,
    p: int | None = None,
    loss: Literal["lm", "em"] | None = None,
    time: str | None = None,
    window: int | None = None,
    every: Length | None = None,
    move_cost: Literal["linear", "quadratic"] | None = None,
    move_factor: float | None = None,
    suppress_cost: float | None = None,
    late: Literal["refuse", "suppress"] | None = None,
    finish: bool | None = None,
    inner: Literal["anatomy", "mondrian", "m_invariant"] | None = None,
    storage: Mapping[str, str] | None = None,
    memory_limit: int | str | None = None,
) -> Publication:
    """Returns a publication to insert snapshots into; without a method, to read only.

    Example:
        an.publication("lake/hospital/", method="m_invariant", m=10, id="patient_id", quasi=["age", "zip"],
            sensitive="disease", schema=patients, begin=True)

    Args:
        location: where readers find it, a folder or URL
        method: how releases are made [none: opened for reading]
        schema: the table that is inserted, or one like it; only its columns count
        begin: True once, to begin the publication. Without it, a place where nothing is counts as storage that is
            away, and is refused [False]
        private: where the ledger is, also in another store; never below the public place [beside the public place]
        moved_from: the public place that the first release was decided for, if that was another one
        allow_independent_releases: True if no person is ever in two releases, for methods that know nothing of
            earlier ones [False]
        allow_repeated_snapshots: True publishes a table that has come back to what it was at an earlier release
            [False]
        max_missing: greatest share of the people of the newest release who may be missing in the next one, 0 to 1
            [all but everybody]
        m: of m_invariant, dynamic: least number of different sensitive values in a group: the bound is 1/m; of
            m_distinct: least number of values that stay possible for everybody
        id: the identifier: one row per person. Never published [the columns' metadata]
        quasi: quasi-identifiers: known to others, published as ranges [the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; several are hidden each by itself, or as
            composite(a, b) [the columns' metadata]
        groups: of m_invariant: who shares a group: neighbours who come together, for ever; or people of the whole
            table, grouped anew for every release (the paper's) ["close"]; of anatomy: who shares a group: people of
            the whole table, in one release; or neighbours who come together, for ever, so that people may be in
            several releases ["cohort"]
        reader: of m_invariant: for whom the bound holds: a reader who knows nobody's value, or also one who knows
            their own and others' values ["stranger"]; of anatomy: with groups "close", for whom the bound holds: a
            reader who knows nobody's value, or also one who knows their own and others' values ["stranger"]; of
            muco: with delta "equal", for whom the bound holds: a reader who knows nobody's value, or also one who
            knows their own and others' values ["stranger"]
        region: of m_invariant: with groups "close", least number of people of a region, whose people are grouped
            anew for every release: fewer counterfeits, wider ranges [none: groups stay]
        balance: of m_invariant: with groups "cohort", who fills gaps: counterfeits only, which tells nothing, or
            new rows where they can, with fewer counterfeits ["blind"]; of m_distinct: who fills gaps: as few
            counterfeits as possible, or without regard to who is new ["minimal"]
        on_ineligible: of m_invariant, m_distinct: when one value makes up more than 1/m of the new rows; the last
            two give people away ["refuse"]
        hierarchies: table of attribute, leaf, level1, level2, ..: what values generalize to
        within: each value of this column is anonymized as a table of its own
        cells: in how many parts a release is made, one after the other, so that none is larger than memory (or
            "auto") ["auto"]
        assignment: of m_invariant: new rows get signatures all together, and must be eligible; or each draws one by
            the shares of the first release ["eligible"]
        domain: of m_invariant: with "drawn": all values that can ever come, also those that the first release has
            not
        updates: of m_distinct: table of from_value, to_value and perhaps probability: what values can become [no
            value can change]; of dynamic: table of from_value, to_value and probability: what values can become, by
            which law [no value can change]
        disjoint: of m_distinct: True: values of a first group can never become alike (m-Distinct*) [False]
        close_updates: of m_distinct: True adds the pairs that are missing for transitivity [False]
        exact: of m_distinct: True: nobody's value is likelier than 1/m, also to who knows this program and the
            probabilities in updates [False]
        k: of mondrian: least number of rows in a group
        l: of mondrian: diversity of a group's sensitive values; of anatomy: no sensitive value makes up more than
            1/l of a group; of muco: least number of rows in a group, all with different sensitive values [what
            delta needs]; of sequential: how many worlds there are, the true one included: the bound is 1/l; of
            reposition: no sensitive value makes up more than 1/l of a snapshot
        diversity: of mondrian: what l means ["frequency"]
        t: of mondrian: greatest distance of a group's sensitive values from the table's, 0 to 1
        cuts: of mondrian, muco: where groups are: where least is lost, at the median of the widest column, or so
            that cuts tell nothing of values ["tight"]; of sequential: where groups are: where least is lost, or at
            the median of the widest column ["tight"]
        insensitive: of mondrian, anatomy, muco: columns to keep as they are; whoever knows them of somebody finds
            the row by them
        delta: of muco: no row contributes more than this share to the probability of a published value; "equal":
            all rows of a group the same
        other: of sequential: columns that no reader knows; they travel with the sensitive value
        p: of sequential: most rows that are matched exactly at a time, up to 1000 [100]
        loss: of sequential: what is kept small: the loss metric, or the entropy ["lm"]
        time: of reposition: a date, a timestamp or a number: what snapshots are cut by
        window: of reposition: snapshots that are held back
        every: of reposition: length of a snapshot [1 day, or 1]
        move_cost: of reposition: what publishing snapshots late costs ["linear"]
        move_factor: of reposition: times this [1]
        suppress_cost: of reposition: what not publishing a record costs [as moving it by window]
        late: of reposition: what becomes of rows of a closed snapshot ["refuse"]
        finish: of reposition: True publishes the last window, too [False]
        inner: of reposition: the method that makes groups of a snapshot
        storage: options of object stores, such as {"aws.region": ".."}
        memory_limit: the greatest size in memory, in bytes or as a text such as "4GB"
    """
    return open_publication(locals())
