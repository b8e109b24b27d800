//! Queries that are measured, and the files that they read.

/// The columns that tables of people are sorted by.
const QUASI: &str = "age, gender, education, birthplace";

/// A method with its parameters.
pub(crate) struct Method {
    pub(crate) name: &'static str,
    /// Its call. In quotes are names of [`FILES`], the table that is published first.
    call: &'static str,
    /// Bytes of an encoded row.
    pub(crate) bytes: f64,
    /// The greatest table that it is measured with.
    pub(crate) most_rows: u64,
}

impl Method {
    pub(crate) fn release(&self) -> String {
        format!("SELECT * FROM {}", self.call)
    }

    /// Returns the table that is published.
    pub(crate) fn table(&self) -> &'static str {
        FILES.iter().map(|(name, _)| *name).find(|name| self.call.split('\'').nth(1) == Some(*name)).unwrap()
    }
}

const MOST: u64 = u64::MAX;

pub(crate) const METHODS: [Method; 14] = [
    Method { name: "m_invariant, m = 2", call: "m_invariant('census', 2, PEOPLE)", bytes: 28.0, most_rows: MOST },
    Method { name: "m_invariant, m = 10", call: "m_invariant('census', 10, PEOPLE)", bytes: 28.0, most_rows: MOST },
    Method {
        name: "m_invariant, m = 10, cohort",
        call: "m_invariant('census', 10, PEOPLE, groups => 'cohort')",
        bytes: 28.0,
        most_rows: MOST,
    },
    Method {
        name: "m_invariant, m = 10, by group",
        call: "m_invariant('census', 10, PEOPLE) ORDER BY group_id",
        bytes: 28.0,
        most_rows: MOST,
    },
    Method {
        name: "m_invariant, m = 10, second",
        call: "m_invariant('later', 10, PEOPLE, previous => 'signatures')",
        bytes: 28.0,
        most_rows: MOST,
    },
    Method {
        name: "m_distinct, m = 6",
        call: "m_distinct('census', 6, PEOPLE, updates => 'updates')",
        bytes: 28.0,
        most_rows: MOST,
    },
    Method {
        name: "m_distinct, m = 6, second",
        call: "m_distinct('changed', 6, PEOPLE, updates => 'updates', previous => 'candidates')",
        bytes: 28.0,
        most_rows: MOST,
    },
    Method {
        name: "sequential_worlds, l = 5",
        call: "sequential_worlds('census', 5, PEOPLE)",
        bytes: 28.0,
        most_rows: MOST,
    },
    Method {
        name: "sequential_release, l = 5",
        call: "sequential_release('census', 'worlds', PEOPLE)",
        bytes: 28.0,
        most_rows: MOST,
    },
    Method { name: "mondrian, k = 10", call: "mondrian('census', 10, quasi => (QUASI))", bytes: 16.0, most_rows: MOST },
    Method {
        name: "mondrian, k = 10, by group",
        call: "mondrian('census', 10, quasi => (QUASI)) ORDER BY group_id",
        bytes: 16.0,
        most_rows: MOST,
    },
    Method {
        name: "anatomy, l = 10",
        call: "anatomy('census', 10, quasi => (QUASI), sensitive => occupation)",
        bytes: 20.0,
        most_rows: MOST,
    },
    Method {
        name: "muco, delta = 1/6, l = 10",
        call: "muco('census', 1.0 / 6, 10, quasi => (QUASI), sensitive => occupation)",
        bytes: 20.0,
        most_rows: MOST,
    },
    Method {
        name: "reposition, l = 4, window = 7",
        call: "reposition('stream', 4, time => tick, window => 7, sensitive => v, finish => true)",
        bytes: 28.0,
        most_rows: MOST,
    },
];

/// Files by name, and the queries whose rows they hold. In quotes are names of others.
pub(crate) const FILES: [(&str, &str); 8] = [
    ("census", "SELECT * FROM census(ROWS)"),
    // A tenth of the people are others.
    ("later", "SELECT * FROM census(WITH_OTHERS) WHERE person_id > OTHERS"),
    // And of a quarter the occupation is drawn anew from its class.
    (
        "changed",
        "SELECT person_id, age, gender, education, birthplace, income,
         CASE person_id % 4 WHEN 0 THEN (occupation - 1) / 10 * 10 + 1 + person_id / 4 % 10 ELSE occupation END::INT AS occupation
         FROM 'later'",
    ),
    // Occupations in classes of ten.
    (
        "updates",
        "SELECT a.value::INT AS from_value, b.value::INT AS to_value
         FROM generate_series(1, 50) a JOIN generate_series(1, 50) b ON (a.value - 1) / 10 = (b.value - 1) / 10",
    ),
    (
        "signatures",
        "SELECT person_id, signature, ring, occupation FROM m_invariant('census', 10, PEOPLE, private => true) WHERE person_id IS NOT NULL",
    ),
    (
        "candidates",
        "SELECT person_id, signature, signature_label FROM m_distinct('census', 6, PEOPLE, updates => 'updates', private => true)
         WHERE person_id IS NOT NULL",
    ),
    ("worlds", "SELECT * FROM sequential_worlds('census', 5, PEOPLE)"),
    // As in the benchmark `reposition`: of 40 values some are more frequent, and one of these much more so on some days.
    (
        "stream",
        "SELECT value AS id, value / 700 AS tick, (value * 7919) % 1000 AS age,
         CASE WHEN (value * 48271) % 2147483647 % 100 < (value / 700) % 20 THEN 0
         ELSE power((value * 69621) % 2147483647 % 1000 / 1000.0, 2)::DOUBLE * 40 END::INT AS v
         FROM generate_series(0, ROWS - 1) ORDER BY tick",
    ),
];

/// Returns the columns that a table is sorted by.
pub(crate) fn order(table: &str) -> &'static str {
    if table == "stream" { "tick" } else { QUASI }
}

/// Returns a query with all that its words stand for; `file` tells where a file is.
pub(crate) fn spelled_out(query: &str, rows: u64, file: impl Fn(&str) -> String) -> String {
    let others = rows / 10;
    let query = query
        .replace("PEOPLE", "id => person_id, quasi => (QUASI), sensitive => occupation")
        .replace("QUASI", QUASI)
        .replace("WITH_OTHERS", &(rows + others).to_string())
        .replace("OTHERS", &others.to_string())
        .replace("ROWS", &rows.to_string());
    FILES.iter().fold(query, |query, (name, _)| query.replace(&format!("'{name}'"), &format!("'{}'", file(name))))
}
