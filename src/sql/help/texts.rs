//! The texts of the help: what each function and argument is for.

/// Function (empty: all), argument, text, and the default where the parameter does not have it.
pub(super) const PARAMETERS: &[(&str, &str, &str, &str)] = &[
    // Everywhere.
    (
        "",
        "distribution",
        "how values lie in ranges: as the ends of all ranges do, and somebody at each end, or evenly",
        "",
    ),
    ("", "publication", "the name of a publication", "required"),
    // Of one function.
    ("information_loss", "original", "the table", "required"),
    ("information_loss", "release", "a release of it", "required"),
    ("information_loss", "id", "of perturbed releases: pairs published and original rows", "the release's"),
    ("estimated", "release", "a release: a call, a table, or files", "required"),
    ("flat", "release", "a release: a call, a table, or files", "required"),
    ("query_accuracy", "original", "the table", "required"),
    ("query_accuracy", "release", "a release of it", "required"),
    ("query_accuracy", "queries", "how many", ""),
    ("query_accuracy", "selectivity", "share of the table that a query would select if values were uniform", ""),
    ("query_accuracy", "aggregate", "what is asked; sum and avg of the sensitive attribute", ""),
    ("query_accuracy", "predicates", "how many quasi-identifiers have a range", "all"),
    ("advise", "id", "the identifier: one row per person", "suggested by profile"),
    ("advise", "quasi", "quasi-identifiers: known to others", "suggested by profile"),
    ("advise", "sensitive", "what nobody should learn", "suggested by profile"),
    ("advise", "error", "the median relative error of counts that is acceptable", ""),
    ("advise", "rows", "how many rows are measured, drawn at random", ""),
    ("advise", "queries", "random queries of each setting", ""),
    ("census", "rows", "how many people", "required"),
    ("census", "seed", "the same seed, the same people", ""),
    ("disclosure", "releases", "a release, several as (r1, r2), or a publication", "required"),
    ("disclosure", "original", "what the reader knows, and the true sensitive values", "background"),
    ("disclosure", "background", "what the reader knows: identifiers and quasi-identifiers", "original"),
    ("disclosure", "strength", "what the reader knows of groups", ""),
    ("disclosure", "facts", "what else the reader knows: identifier, sensitive value and perhaps release", "nothing"),
    (
        "disclosure",
        "budget",
        "decisions of the solver for each part of a joint inference; what is not found out is undecided",
        "",
    ),
    ("disclosure", "p_match", "for rows that look like rows: the chance that a quasi-identifier is looked at", "none"),
    ("reposition", "l", "no sensitive value makes up more than 1/l of a snapshot", "required"),
    ("reposition", "time", "a date, a timestamp or a number: what snapshots are cut by", "required"),
    ("reposition", "window", "snapshots that are held back", "required"),
    ("reposition", "every", "length of a snapshot", "1 day, or 1"),
    ("reposition", "move_cost", "what publishing snapshots late costs", ""),
    ("reposition", "move_factor", "times this", "1"),
    (
        "reposition",
        "suppress_cost",
        "what not publishing a record costs: a number, or value and cost",
        "as moving it by window",
    ),
    ("reposition", "late", "what becomes of rows of a closed snapshot", ""),
    ("reposition", "finish", "true publishes the last window, too", "false"),
    ("reposition", "private", "true adds the original time and the status", "false"),
    #[cfg(feature = "publication")]
    ("check_snapshots", "snapshots", "historical snapshots in their order, as (s1, s2, ..)", "required"),
    #[cfg(feature = "publication")]
    ("check_snapshots", "private", "true lists the rows, with identifiers", "false"),
    #[cfg(feature = "publication")]
    ("release", "number", "which; from 1", "the newest"),
];
