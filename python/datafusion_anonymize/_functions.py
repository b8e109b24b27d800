"""The functions, with their arguments: written by python/generate.py from the signatures of the SQL functions."""

from __future__ import annotations

from typing import Literal

from ._measures import Disclosure, infer
from ._release import Release, make
from ._sql import Query
from ._table import Table
from ._types import Columns, Input, Inputs, Length, Releases, Seed


def _table(function: str, arguments: dict[str, object]) -> Table:
    with Query() as query:
        return Table(query.run(f"SELECT * FROM {query.call(function, arguments)}", function, 5))


def m_invariant(
    input: Input,
    m: int,
    *,
    id: str | None = None,
    quasi: Columns | None = None,
    sensitive: Columns | None = None,
    previous: Inputs | None = None,
    balance: Literal["blind", "minimal"] | None = None,
    on_ineligible: Literal["refuse", "counterfeit", "withhold"] | None = None,
    seed: Seed | None = None,
    hierarchies: Input | None = None,
    within: str | None = None,
    cells: int | Literal["auto"] | None = None,
    assignment: Literal["eligible", "drawn"] | None = None,
    domain: Input | None = None,
) -> Release:
    """A release of people who come and go, safe beside all earlier releases (m-invariance).

    Args:
        input: a table, view, CTE or file, or a query in parentheses
        m: least number of different sensitive values in a group: the bound is 1/m
        id: the identifier: one row per person. Never published [the session's, or the columns' metadata]
        quasi: quasi-identifiers: known to others, published as ranges [the session's, or the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; of several columns, whose combination [the
            session's, or the columns' metadata]
        previous: all earlier private releases, in their order: one, or several in parentheses [none: the first
            release]
        balance: who fills gaps: counterfeits only, which tells nothing, or new rows where they can, with fewer
            counterfeits ('blind', 'minimal') ['blind']
        on_ineligible: when one value makes up more than 1/m of the new rows; the last two give people away
            ('refuse', 'counterfeit', 'withhold') ['refuse']
        seed: a long secret text, for reproducible runs [entropy]
        hierarchies: attribute, leaf, level1, level2, ..: what values generalize to [none]
        within: each value of this column is anonymized as a table of its own [none]
        cells: in how many parts a release is made, one after the other, so that none is larger than memory (or
            'auto') ['auto']
        assignment: new rows get signatures all together, and must be eligible; or each draws one by the shares of
            the first release ('eligible', 'drawn') ['eligible']
        domain: with 'drawn': all values that can ever come, also those that the first release has not [none]
    """
    return make("m_invariant", {
        "input": input,
        "m": m,
        "id": id,
        "quasi": quasi,
        "sensitive": sensitive,
        "previous": previous,
        "balance": balance,
        "on_ineligible": on_ineligible,
        "seed": seed,
        "hierarchies": hierarchies,
        "within": within,
        "cells": cells,
        "assignment": assignment,
        "domain": domain,
    })


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
    """A release of people who come and go and whose sensitive values change (m-Distinct).

    Args:
        input: a table, view, CTE or file, or a query in parentheses
        m: least number of values that stay possible for everybody
        id: the identifier: one row per person. Never published [the session's, or the columns' metadata]
        quasi: quasi-identifiers: known to others, published as ranges [the session's, or the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; of several columns, whose combination [the
            session's, or the columns' metadata]
        updates: from_value, to_value and perhaps probability: what values can become [no value can change]
        previous: all earlier private releases, in their order: one, or several in parentheses; the latest counts,
            so one table of several needs a column release [none: the first release]
        disjoint: true: values of a first group can never become alike (m-Distinct*) [false]
        close_updates: true adds the pairs that are missing for transitivity [false]
        exact: true: nobody's value is likelier than 1/m, also to who knows this program and the probabilities in
            updates [false]
        balance: who fills gaps: as few counterfeits as possible, or without regard to who is new ('minimal',
            'blind') ['minimal']
        on_ineligible: when one value makes up more than 1/m of the new rows; the last two give people away
            ('refuse', 'counterfeit', 'withhold') ['refuse']
        seed: a long secret text, for reproducible runs [entropy]
        hierarchies: attribute, leaf, level1, level2, ..: what values generalize to [none]
        within: each value of this column is anonymized as a table of its own [none]
        cells: in how many parts a release is made, one after the other, so that none is larger than memory (or
            'auto') ['auto']
    """
    return make("m_distinct", {
        "input": input,
        "m": m,
        "id": id,
        "quasi": quasi,
        "sensitive": sensitive,
        "updates": updates,
        "previous": previous,
        "disjoint": disjoint,
        "close_updates": close_updates,
        "exact": exact,
        "balance": balance,
        "on_ineligible": on_ineligible,
        "seed": seed,
        "hierarchies": hierarchies,
        "within": within,
        "cells": cells,
    })


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
    """A release of people who come and go, whose values may change, with other columns each time; safe beside all earlier ones.

    Args:
        input: a table, view, CTE or file, or a query in parentheses
        m: least number of different sensitive values in a group: the bound is 1/m
        id: the identifier: one row per person. Never published [the session's, or the columns' metadata]
        quasi: quasi-identifiers: known to others, published as ranges [the session's, or the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; of several columns, whose combination [the
            session's, or the columns' metadata]
        updates: from_value, to_value and probability: what values can become, by which law [no value can change]
        previous: all earlier private releases, in their order: several in parentheses, or one table with a column
            release (1, 2, 3, ..) [none: the first release]
        seed: a long secret text, for reproducible runs [entropy]
        hierarchies: attribute, leaf, level1, level2, ..: what values generalize to [none]
        within: each value of this column is anonymized as a table of its own [none]
        cells: in how many parts a release is made, one after the other, so that none is larger than memory (or
            'auto') ['auto']
    """
    return make("dynamic", {
        "input": input,
        "m": m,
        "id": id,
        "quasi": quasi,
        "sensitive": sensitive,
        "updates": updates,
        "previous": previous,
        "seed": seed,
        "hierarchies": hierarchies,
        "within": within,
        "cells": cells,
    })


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
    """One release with ranges: k-anonymity, l-diversity, t-closeness.

    Args:
        input: a table, view, CTE or file, or a query in parentheses
        k: least number of rows in a group [none]
        l: diversity of a group's sensitive values [none]
        quasi: quasi-identifiers: known to others, published as ranges [the session's, or the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; of several columns, whose combination [the
            session's, or the columns' metadata]
        diversity: what l means ('frequency', 'distinct', 'entropy') ['frequency']
        t: greatest distance of a group's sensitive values from the table's, 0 to 1 [none]
        hierarchies: attribute, leaf, level1, level2, ..: what values generalize to [none]
        within: each value of this column is anonymized as a table of its own [none]
        cuts: where groups are: where least is lost, at the median of the widest column, or so that cuts tell
            nothing of values ('tight', 'median', 'fair') ['tight']
        id: the identifier: one row per person. Never published [the session's, or the columns' metadata]
        seed: a long secret text, for reproducible runs [entropy]
        insensitive: columns to keep as they are; whoever knows them of somebody finds the row by them [none]
        cells: in how many parts a release is made, one after the other, so that none is larger than memory (or
            'auto') ['auto']
    """
    return make("mondrian", {
        "input": input,
        "k": k,
        "l": l,
        "quasi": quasi,
        "sensitive": sensitive,
        "diversity": diversity,
        "t": t,
        "hierarchies": hierarchies,
        "within": within,
        "cuts": cuts,
        "id": id,
        "seed": seed,
        "insensitive": insensitive,
        "cells": cells,
    })


def anatomy(
    input: Input,
    l: int,
    *,
    quasi: Columns | None = None,
    sensitive: Columns | None = None,
    within: str | None = None,
    id: str | None = None,
    seed: Seed | None = None,
    insensitive: Columns | None = None,
    cells: int | Literal["auto"] | None = None,
) -> Release:
    """One release with exact quasi-identifiers beside the sensitive values of their group.

    Args:
        input: a table, view, CTE or file, or a query in parentheses
        l: no sensitive value makes up more than 1/l of a group
        quasi: quasi-identifiers: known to others, published as ranges [the session's, or the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; of several columns, whose combination [the
            session's, or the columns' metadata]
        within: each value of this column is anonymized as a table of its own [none]
        id: the identifier: one row per person. Never published [the session's, or the columns' metadata]
        seed: a long secret text, for reproducible runs [entropy]
        insensitive: columns to keep as they are; whoever knows them of somebody finds the row by them [none]
        cells: in how many parts a release is made, one after the other, so that none is larger than memory (or
            'auto') ['auto']
    """
    return make("anatomy", {
        "input": input,
        "l": l,
        "quasi": quasi,
        "sensitive": sensitive,
        "within": within,
        "id": id,
        "seed": seed,
        "insensitive": insensitive,
        "cells": cells,
    })


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
    seed: Seed | None = None,
    insensitive: Columns | None = None,
    cells: int | Literal["auto"] | None = None,
) -> Release:
    """One release whose rows still look like rows (mutual cover).

    Args:
        input: a table, view, CTE or file, or a query in parentheses
        delta: no row contributes more than this share to the probability of a published value; 'equal': all rows of
            a group the same
        l: least number of rows in a group, all with different sensitive values [what delta needs]
        quasi: quasi-identifiers: known to others, published as ranges [the session's, or the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; of several columns, whose combination [the
            session's, or the columns' metadata]
        hierarchies: attribute, leaf, level1, level2, ..: what values generalize to [none]
        within: each value of this column is anonymized as a table of its own [none]
        cuts: where groups are: where least is lost, at the median of the widest column, or so that cuts tell
            nothing of values ('tight', 'median', 'fair') ['tight']
        id: the identifier: one row per person. Never published [the session's, or the columns' metadata]
        seed: a long secret text, for reproducible runs [entropy]
        insensitive: columns to keep as they are; whoever knows them of somebody finds the row by them [none]
        cells: in how many parts a release is made, one after the other, so that none is larger than memory (or
            'auto') ['auto']
    """
    return make("muco", {
        "input": input,
        "delta": delta,
        "l": l,
        "quasi": quasi,
        "sensitive": sensitive,
        "hierarchies": hierarchies,
        "within": within,
        "cuts": cuts,
        "id": id,
        "seed": seed,
        "insensitive": insensitive,
        "cells": cells,
    })


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
    """A release of some columns, safe beside releases of other columns of the same people.

    Args:
        input: a table, view, CTE or file, or a query in parentheses
        worlds: what sequential_worlds returned
        id: the identifier: one row per person. Never published [the session's, or the columns' metadata]
        quasi: quasi-identifiers: known to others, published as ranges [the session's, or the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; of several columns, whose combination [the
            session's, or the columns' metadata]
        other: columns that no reader knows; they travel with the sensitive value [none]
        p: most rows that are matched exactly at a time, up to 1000 [100]
        loss: what is kept small: the loss metric, or the entropy ('lm', 'em') ['lm']
        hierarchies: attribute, leaf, level1, level2, ..: what values generalize to [none]
        seed: a long secret text, for reproducible runs [entropy]
    """
    return make("sequential_release", {
        "input": input,
        "worlds": worlds,
        "id": id,
        "quasi": quasi,
        "sensitive": sensitive,
        "other": other,
        "p": p,
        "loss": loss,
        "hierarchies": hierarchies,
        "seed": seed,
    })


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
    """The baseline of sequential_release: one release whose projections are published.

    Args:
        input: a table, view, CTE or file, or a query in parentheses
        l: people that every row covers, with different sensitive values
        quasi: quasi-identifiers: known to others, published as ranges [the session's, or the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; of several columns, whose combination [the
            session's, or the columns' metadata]
        other: columns that no reader knows; they travel with the sensitive value [none]
        cuts: where groups are: where least is lost, or at the median of the widest column ('tight', 'median')
            ['tight']
        hierarchies: attribute, leaf, level1, level2, ..: what values generalize to [none]
        id: the identifier: one row per person. Never published [the session's, or the columns' metadata]
        seed: a long secret text, for reproducible runs [entropy]
    """
    return make("non_sequential", {
        "input": input,
        "l": l,
        "quasi": quasi,
        "sensitive": sensitive,
        "other": other,
        "cuts": cuts,
        "hierarchies": hierarchies,
        "id": id,
        "seed": seed,
    })


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
    """What sequential_release needs: other worlds, equally possible to a reader; made once and kept.

    Args:
        input: a table, view, CTE or file, or a query in parentheses
        l: how many worlds there are, the true one included: the bound is 1/l
        id: the identifier: one row per person. Never published [the session's, or the columns' metadata]
        quasi: quasi-identifiers: known to others, published as ranges [the session's, or the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; of several columns, whose combination [the
            session's, or the columns' metadata]
        other: columns that no reader knows; they travel with the sensitive value [none]
        worlds: what it returned before: only new people get worlds [none]
        cuts: where groups are: where least is lost, or at the median of the widest column ('tight', 'median')
            ['tight']
        hierarchies: attribute, leaf, level1, level2, ..: what values generalize to [none]
        seed: a long secret text, for reproducible runs [entropy]
    """
    return _table("sequential_worlds", {
        "input": input,
        "l": l,
        "id": id,
        "quasi": quasi,
        "sensitive": sensitive,
        "other": other,
        "worlds": worlds,
        "cuts": cuts,
        "hierarchies": hierarchies,
        "seed": seed,
    })


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
    """A stream of small skewed snapshots made eligible, by publishing some records late.

    Args:
        input: a table, view, CTE or file, or a query in parentheses
        l: no sensitive value makes up more than 1/l of a snapshot
        time: a date, a timestamp or a number: what snapshots are cut by
        window: snapshots that are held back
        sensitive: published as it is, but nobody can tell whose it is; of several columns, whose combination [the
            session's, or the columns' metadata]
        every: length of a snapshot [1 day, or 1]
        move_cost: what publishing snapshots late costs ('linear', 'quadratic') ['linear']
        move_factor: times this [1]
        suppress_cost: what not publishing a record costs: a number, or value and cost [as moving it by window]
        late: what becomes of rows of a closed snapshot ('refuse', 'suppress') ['refuse']
        finish: true publishes the last window, too [false]
        seed: a long secret text, for reproducible runs [entropy]
        private: true adds the original time and the status [false]
    """
    return _table("reposition", {
        "input": input,
        "l": l,
        "time": time,
        "window": window,
        "sensitive": sensitive,
        "every": every,
        "move_cost": move_cost,
        "move_factor": move_factor,
        "suppress_cost": suppress_cost,
        "late": late,
        "finish": finish,
        "seed": seed,
        "private": private,
    })


def profile(
    input: Input,
    *,
    id: str | None = None,
    quasi: Columns | None = None,
    sensitive: Columns | None = None,
) -> Table:
    """A table before it is anonymized: who is singled out, suggested roles, the largest m.

    Args:
        input: a table, view, CTE or file, or a query in parentheses
        id: the identifier: one row per person. Never published [the session's, or the columns' metadata]
        quasi: quasi-identifiers: known to others, published as ranges [the session's, or the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; of several columns, whose combination [the
            session's, or the columns' metadata]
    """
    return _table("profile", {
        "input": input,
        "id": id,
        "quasi": quasi,
        "sensitive": sensitive,
    })


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
    """What each method and setting costs on a table, measured; which to take, and the SQL.

    Args:
        input: a table, view, CTE or file, or a query in parentheses
        id: the identifier: one row per person [suggested by profile]
        quasi: quasi-identifiers: known to others [suggested by profile]
        sensitive: what nobody should learn [suggested by profile]
        error: the median relative error of counts that is acceptable [0.1]
        rows: how many rows are measured, drawn at random [200000]
        queries: random queries of each setting [1000]
        seed: a long secret text, for reproducible runs [entropy]
    """
    return _table("advise", {
        "input": input,
        "id": id,
        "quasi": quasi,
        "sensitive": sensitive,
        "error": error,
        "rows": rows,
        "queries": queries,
        "seed": seed,
    })


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
    """Random queries of a table and its release, and how far estimates are off.

    Args:
        original: the table
        release: a release of it
        queries: how many [10000]
        selectivity: share of the table that a query would select if values were uniform [0.1]
        aggregate: what is asked; sum and avg of the sensitive attribute ('count', 'sum', 'avg') ['count']
        predicates: how many quasi-identifiers have a range [all]
        hierarchies: attribute, leaf, level1, level2, ..: what values generalize to [none]
        distribution: how values lie in ranges: as the ends of all ranges do, and somebody at each end, or evenly
            ('fitted', 'uniform') ['fitted']
        prior: attribute, value, share: how values are distributed, if that is known from elsewhere [none]
        seed: a long secret text, for reproducible runs [entropy]
    """
    return _table("query_accuracy", {
        "original": original,
        "release": release,
        "queries": queries,
        "selectivity": selectivity,
        "aggregate": aggregate,
        "predicates": predicates,
        "hierarchies": hierarchies,
        "distribution": distribution,
        "prior": prior,
        "seed": seed,
    })


def census(
    rows: int,
    *,
    seed: int | None = None,
) -> Table:
    """Synthetic census microdata.

    Args:
        rows: how many people
        seed: the same seed, the same people [0]
    """
    return _table("census", {
        "rows": rows,
        "seed": seed,
    })


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
    """What a reader of releases can infer about everybody.

    Args:
        releases: a release, several as (r1, r2), or a publication
        original: what the reader knows, and the true sensitive values [background]
        background: what the reader knows: identifiers and quasi-identifiers [original]
        id: the identifier: one row per person. Never published [the session's, or the columns' metadata]
        quasi: quasi-identifiers: known to others, published as ranges [the session's, or the columns' metadata]
        sensitive: published as it is, but nobody can tell whose it is; of several columns, whose combination [the
            session's, or the columns' metadata]
        strength: what the reader knows of groups ('cover', 'group', 'joint', 'joint_cover') ['cover']
        updates: from_value, to_value and perhaps probability: what values can become [no value can change]
        hierarchies: attribute, leaf, level1, level2, ..: what values generalize to [none]
        p_match: for rows that look like rows: the chance that a quasi-identifier is looked at [none]
        facts: what else the reader knows: identifier, sensitive value and perhaps release [nothing]
        budget: decisions of the solver for each part of a joint inference; what is not found out is undecided
            [20000000]
    """
    return infer({
        "releases": releases,
        "original": original,
        "background": background,
        "id": id,
        "quasi": quasi,
        "sensitive": sensitive,
        "strength": strength,
        "updates": updates,
        "hierarchies": hierarchies,
        "p_match": p_match,
        "facts": facts,
        "budget": budget,
    })
