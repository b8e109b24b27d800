//! Estimates against the naive evaluation of their definition: every row of a release becomes all the people that it may stand
//! for, each with its probability, and plain SQL sums the probabilities.

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::prelude::SessionContext;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::support::{number, run, session, table};

/// Orders of the texts: by value, and as the leaves of a hierarchy stand.
const BY_VALUE: &str = "'a', 'b', 'c', 'd', 'e', 'f'";
const BY_LEAF: &str = "'a', 'd', 'b', 'e', 'c', 'f'";

/// Makes a random table `t`: whole numbers, texts and truth values, some NULL, and a sensitive number.
async fn make_table(context: &SessionContext, rng: &mut StdRng) {
    let nulls = *[0.0, 0.15].choose(rng).unwrap();
    let mut rows = Vec::new();
    for id in 1..=rng.random_range(12..50) {
        let maybe = |rng: &mut StdRng, value: String| if rng.random_bool(nulls) { "NULL".to_owned() } else { value };
        let a = rng.random_range(-3..12).to_string();
        let b = format!("'{}'", ["a", "b", "c", "d", "e", "f"].choose(rng).unwrap());
        let c = rng.random_bool(0.4).to_string();
        let (a, b, c) = (maybe(rng, a), maybe(rng, b), maybe(rng, c));
        rows.push(format!("({id}, {a}, {b}, {c}, {})", rng.random_range(1..5)));
    }
    let rows = rows.join(", ");
    let sql = format!(
        "CREATE OR REPLACE TABLE t AS SELECT arrow_cast(column1, 'Int64') AS id, arrow_cast(column2, 'Int32') AS a,
         column3 AS b, column4 AS c, arrow_cast(column5, 'Int32') AS s FROM (VALUES {rows})"
    );
    run(context, &sql).await.unwrap();
}

/// Returns a release `r` of it, what to ask, and whether it is by Anatomy; and everybody whom its rows may stand for in `e`: `i` is the row, `w` the
/// probability.
async fn release(context: &SessionContext, rng: &mut StdRng) -> (String, bool) {
    const INTERVALS: [&str; 3] = [
        "m_invariant(t, 2, id => id, quasi => (a, b, c), sensitive => s, on_ineligible => 'counterfeit'",
        "mondrian(t, k => 3, quasi => (a, b, c), sensitive => s",
        "mondrian(t, k => 2, l => 2, quasi => (a, b, c), sensitive => s, cuts => 'median'",
    ];
    let fitted = rng.random_bool(0.5);
    let distribution = if fitted { "" } else { ", distribution => 'uniform'" };
    let anatomy = rng.random_bool(0.2);
    let hierarchies = !anatomy && rng.random_bool(0.3);
    let call =
        if anatomy { "anatomy(t, 2, quasi => (a, b, c), sensitive => s" } else { INTERVALS.choose(rng).unwrap() };
    let with = if hierarchies { ", hierarchies => h" } else { "" };
    let seed: u32 = rng.random();
    if run(context, &format!("CREATE OR REPLACE TABLE r AS SELECT * FROM {call}{with}, seed => {seed})")).await.is_err()
    {
        // Not eligible.
        let call = INTERVALS[1];
        run(context, &format!("CREATE OR REPLACE TABLE r AS SELECT * FROM {call}, seed => {seed})")).await.unwrap();
        expand(context, false, BY_VALUE, fitted).await;
        return (format!("estimated(r{distribution})"), false);
    }
    expand(context, anatomy, if hierarchies { BY_LEAF } else { BY_VALUE }, fitted).await;
    let with = if hierarchies { ", hierarchies => h" } else { "" };
    (format!("estimated(r{with}{distribution})"), anatomy)
}

async fn expand(context: &SessionContext, anatomy: bool, order: &str, fitted: bool) {
    run(context, "CREATE OR REPLACE TABLE n AS SELECT row_number() OVER () AS i, * FROM r").await.unwrap();
    let real = "(group_size - counterfeits) / CAST(group_size AS DOUBLE)";
    if anatomy {
        let sql =
            "CREATE OR REPLACE TABLE e AS SELECT i, a, b, c, u.value AS s, u.count / CAST(group_size AS DOUBLE) AS w
                   FROM (SELECT i, a, b, c, group_size, unnest(s) AS u FROM n)";
        run(context, sql).await.unwrap();
        return;
    }
    // Values in their order, NULL first, with their places.
    let whole = "SELECT unnest(generate_series(CAST(least AS BIGINT), CAST(most AS BIGINT))) AS v
                 FROM (SELECT min(coalesce(a.lo, a.hi)) AS least, max(a.hi) AS most FROM r)";
    let whole = format!("CREATE OR REPLACE TABLE da AS SELECT v, row_number() OVER (ORDER BY v) AS k FROM ({whole})");
    run(context, &whole).await.unwrap();
    // Without a hierarchy, only the values that occur as ends of intervals are known.
    let known = if order == BY_LEAF { "true" } else { "v IN (SELECT b.lo FROM r UNION ALL SELECT b.hi FROM r)" };
    run(context, &format!("CREATE OR REPLACE TABLE db AS SELECT v, row_number() OVER (ORDER BY p) AS k
                           FROM (SELECT v, row_number() OVER () AS p FROM (SELECT unnest([{order}]) AS v)) WHERE {known}"))
        .await
        .unwrap();
    run(context, "CREATE OR REPLACE TABLE dc AS SELECT column1 AS v, column2 AS k FROM (VALUES (false, 1), (true, 2))")
        .await
        .unwrap();
    for name in ["a", "b", "c"] {
        let places = format!(
            "CREATE OR REPLACE TABLE p{name} AS SELECT n.i, coalesce(l.k, 0) AS lo, coalesce(h.k, 0) AS hi FROM n
             LEFT JOIN d{name} l ON l.v = n.{name}['lo'] LEFT JOIN d{name} h ON h.v = n.{name}['hi']"
        );
        run(context, &places).await.unwrap();
        let values = format!("(SELECT v, k FROM d{name} UNION ALL SELECT NULL, 0)");
        if !fitted || (order == BY_LEAF && name == "b") {
            let people = format!(
                "CREATE OR REPLACE TABLE x{name} AS SELECT p.i, d.v AS {name}, 1.0 / (p.hi - p.lo + 1) AS w FROM p{name} p
                 JOIN {values} d ON d.k BETWEEN p.lo AND p.hi"
            );
            run(context, &people).await.unwrap();
            continue;
        }
        // How many rows have each value as one of two ends, and as both.
        let counts = format!(
            "CREATE OR REPLACE TABLE q AS SELECT k, sum(wide) AS wide, sum(single) AS single, sum(people) AS people FROM (
             SELECT lo AS k, CASE WHEN lo < hi THEN 1.0 ELSE 0.0 END AS wide, CASE WHEN lo = hi THEN 1.0 ELSE 0.0 END AS single,
                    CASE WHEN lo = hi THEN group_size - counterfeits ELSE 0 END AS people
             FROM p{name} JOIN n ON n.i = p{name}.i WHERE lo > 0
             UNION ALL SELECT hi, 1.0, 0.0, 0 FROM p{name} WHERE lo > 0 AND lo < hi) GROUP BY k"
        );
        run(context, &counts).await.unwrap();
        let length = match name {
            "a" => "(SELECT max(k) - min(k) + 1 FROM q)",
            _ => &format!("(SELECT count(*) FROM d{name})"),
        };
        let weights = format!(
            "CREATE OR REPLACE TABLE y AS SELECT d.k, 0.3 / {length} + coalesce(
               (q.wide + 0.5 * q.single + alike * q.people) / sum(q.wide + 0.5 * q.single + alike * q.people) OVER (), 0) AS y
             FROM d{name} d LEFT JOIN q ON q.k = d.k CROSS JOIN (
               SELECT coalesce(greatest(2 * max(single) / sum(single) - 1, 0) * power(sum(wide) / 2 / (sum(wide) / 2 + sum(single)), 3), 0)
               AS alike FROM q)"
        );
        // A sum of no rows that are alike is no number.
        let weights = weights.replace("max(single) / sum(single)", "max(single) / greatest(sum(single), 1)");
        run(context, &weights).await.unwrap();
        let people = format!(
            "CREATE OR REPLACE TABLE x{name} AS SELECT p.i, d.v AS {name},
             CASE WHEN p.lo = p.hi THEN 1.0
                  WHEN p.lo = 0 THEN ((CASE WHEN d.k IN (p.lo, p.hi) THEN 1.0 ELSE 0.0 END)
                                      + (n.group_size - n.counterfeits - 2) / (p.hi - p.lo + 1.0)) / (n.group_size - n.counterfeits)
                  ELSE ((CASE WHEN d.k IN (p.lo, p.hi) THEN 1.0 ELSE 0.0 END) + (n.group_size - n.counterfeits - 2) * y.y / s.y)
                       / (n.group_size - n.counterfeits) END AS w
             FROM p{name} p JOIN n ON n.i = p.i JOIN {values} d ON d.k BETWEEN p.lo AND p.hi LEFT JOIN y ON y.k = d.k
             LEFT JOIN (SELECT p.i, sum(y.y) AS y FROM p{name} p JOIN y ON y.k BETWEEN p.lo AND p.hi GROUP BY p.i) s ON s.i = p.i"
        );
        run(context, &people).await.unwrap();
    }
    let sql = format!(
        "CREATE OR REPLACE TABLE e AS SELECT n.i, CAST(xa.a AS INT) AS a, xb.b, xc.c, n.s, {real} * xa.w * xb.w * xc.w AS w
         FROM n JOIN xa ON n.i = xa.i JOIN xb ON n.i = xb.i JOIN xc ON n.i = xc.i WHERE xa.w * xb.w * xc.w > 0"
    );
    run(context, &sql).await.unwrap();
}

/// Returns a random condition.
fn condition(rng: &mut StdRng, depth: u32) -> String {
    if depth > 0 && rng.random_bool(0.6) {
        let (left, right) = (condition(rng, depth - 1), condition(rng, depth - 1));
        return match rng.random_range(0..5) {
            0 => format!("NOT ({left})"),
            1 => format!("({left} OR {right})"),
            2 => format!("CASE WHEN {left} THEN {right} ELSE {} END", atom(rng)),
            3 => format!("(({left}) IS NOT TRUE AND {right})"),
            _ => format!("({left} AND {right})"),
        };
    }
    atom(rng)
}

fn atom(rng: &mut StdRng) -> String {
    let n = rng.random_range(-4..13);
    let m = n + rng.random_range(0..6);
    let text = ["a", "b", "c", "d", "e", "f", "x"].choose(rng).unwrap();
    let s = rng.random_range(1..5);
    let atoms = [
        format!("a < {n}"),
        format!("a >= {n}"),
        format!("a = {n}"),
        format!("a <> {n}"),
        format!("a BETWEEN {n} AND {m}"),
        format!("a NOT BETWEEN {n} AND {m}"),
        format!("a IN ({n}, {m}, 3)"),
        format!("a % 3 = {}", s - 1),
        format!("abs(a - 4) < {s}"),
        format!("a < {n}.5"),
        "a IS NULL".to_owned(),
        format!("coalesce(a, {n}) > 2"),
        format!("(a < {n} OR a > {m} OR a IS NULL)"),
        format!("CASE WHEN a > {n} THEN a < {m} ELSE a = 0 END"),
        format!("b = '{text}'"),
        format!("b < '{text}'"),
        format!("b IN ('{text}', 'c')"),
        format!("b LIKE '{text}%'"),
        format!("upper(b) = upper('{text}')"),
        "b IS NOT NULL".to_owned(),
        "c".to_owned(),
        "NOT c".to_owned(),
        "c IS NOT TRUE".to_owned(),
        format!("s = {s}"),
        format!("s < {s}"),
        format!("s IN ({s}, 2)"),
    ];
    atoms.choose(rng).unwrap().clone()
}

/// Returns an estimate and its definition, `$P` standing for a condition on the rows.
fn question(rng: &mut StdRng) -> (String, String) {
    let given = condition(rng, 1);
    let sum = |value: &str| (format!("sum({value})"), format!("sum(w * ({value}))"));
    match rng.random_range(0..12) {
        0 | 1 => ("sum(1.0)".to_owned(), "sum(w)".to_owned()),
        2 => sum("CAST(a AS DOUBLE)"),
        3 => ("avg(a)".to_owned(), "sum(w * a) / sum(CASE WHEN a IS NOT NULL THEN w END)".to_owned()),
        4 => sum("CAST(s AS DOUBLE)"),
        5 => sum(&format!("CASE WHEN {given} THEN 2.0 ELSE CAST(a AS DOUBLE) END")),
        6 => sum("CAST(a AS DOUBLE) * s + CASE WHEN c THEN 1.5 END"),
        7 => (format!("sum(1.0) FILTER (WHERE {given})"), format!("sum(w) FILTER (WHERE {given})")),
        8 => ("avg(s)".to_owned(), "sum(w * s) / sum(w)".to_owned()),
        9 => (
            "count_stddev(*)".to_owned(),
            "(SELECT sqrt(greatest(sum(v * (1 - v)), 0)) FROM (SELECT sum(w) AS v FROM e WHERE $P GROUP BY i))"
                .to_owned(),
        ),
        10 => (
            "sum_stddev(a)".to_owned(),
            "(SELECT CASE WHEN sum(k) > 0 THEN sqrt(greatest(sum(q - v * v), 0)) END FROM
              (SELECT sum(w * a) AS v, sum(w * a * a) AS q, sum(w) AS k FROM e WHERE a IS NOT NULL AND $P GROUP BY i))"
                .to_owned(),
        ),
        _ => ("sum(CAST(abs(a) AS DOUBLE)) / 3".to_owned(), "sum(w * abs(a)) / 3".to_owned()),
    }
}

async fn numbers(context: &SessionContext, sql: &str) -> Result<Vec<Option<f64>>, String> {
    let batches = run(context, sql).await.map_err(|error| error.strip_backtrace())?;
    let mut numbers = Vec::new();
    for batch in batches {
        for column in batch.columns() {
            let column = cast(column, &DataType::Float64).unwrap();
            numbers.extend(column.as_primitive::<Float64Type>().iter());
        }
    }
    Ok(numbers)
}

fn close(a: &[Option<f64>], b: &[Option<f64>]) -> bool {
    let near = |(a, b): (&Option<f64>, &Option<f64>)| match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-6 * (1.0 + a.abs()),
        (a, b) => a.is_none() && b.is_none(),
    };
    a.len() == b.len() && a.iter().zip(b).all(near)
}

#[tokio::test(flavor = "multi_thread")]
async fn estimates_are_what_their_definition_says() {
    let mut rng = StdRng::seed_from_u64(5);
    let context = session();
    // DataFusion's two plans of the definitions' queries may differ in which expressions can be NULL.
    run(&context, "SET datafusion.execution.skip_physical_aggregate_schema_check = true").await.unwrap();
    run(
        &context,
        "CREATE TABLE h AS SELECT column1 AS attribute, column2 AS leaf, column3 AS level1 FROM (VALUES
        ('b', 'a', 'p'), ('b', 'd', 'p'), ('b', 'b', 'q'), ('b', 'e', 'q'), ('b', 'c', 'r'), ('b', 'f', 'r'))",
    )
    .await
    .unwrap();
    let (mut asked, mut refused) = (0, 0);
    for _ in 0..24 {
        make_table(&context, &mut rng).await;
        let (estimated, anatomy) = release(&context, &mut rng).await;
        let everybody = numbers(&context, &format!("SELECT count(*) FROM {estimated}")).await.unwrap();
        assert_eq!(everybody, [Some(number(&context, "SELECT count(*) FROM t").await as f64)]);
        let known = known_texts(&context, anatomy || estimated.contains("hierarchies")).await;
        for _ in 0..40 {
            let (estimate, definition) = question(&mut rng);
            let mut rows = if rng.random_bool(0.8) { condition(&mut rng, 3) } else { "true".to_owned() };
            if !anatomy && rng.random_bool(0.1) {
                rows = format!("({rows}) AND s IN (SELECT s FROM t WHERE s <> 2)");
            }
            let groups = *["", "", "s", "a", "b", "a % 3, c", "coalesce(b, 'none'), s"].choose(&mut rng).unwrap();
            // A definition that has a query of its own is about all rows.
            let groups = if definition.contains("FROM e ") { "" } else { groups };
            let definition = definition.replace("$P", &format!("({rows})"));
            let by = |what: &str| match groups {
                "" => what.to_owned(),
                groups => format!("{what} GROUP BY {groups} ORDER BY {groups}"),
            };
            let sql = by(&format!("SELECT {estimate} FROM {estimated} WHERE {rows}"));
            if names_others(&sql, &known) {
                continue;
            }
            let naive = by(&format!("SELECT {definition} FROM e WHERE {rows}"));
            let naive = if definition.contains("FROM e ") { format!("SELECT {definition}") } else { naive };
            let expected = numbers(&context, &naive).await.unwrap_or_else(|error| panic!("{naive}: {error}"));
            asked += 1;
            match numbers(&context, &sql).await {
                Ok(found) => {
                    assert!(close(&found, &expected), "{sql}\n{found:?}\n{expected:?}\n{}", shown(&context).await);
                }
                Err(error) => {
                    assert!(error.contains("in too many ways"), "{sql}: {error}");
                    refused += 1;
                }
            }
        }
    }
    println!("{asked} queries, {refused} of them refused");
    assert!(refused * 20 < asked, "{refused} of {asked} queries are refused");
}

/// Returns the texts that are ends of ranges; all, where they are published as they are or known by a hierarchy.
async fn known_texts(context: &SessionContext, all: bool) -> Vec<String> {
    if all {
        return ["a", "b", "c", "d", "e", "f", "x"].map(str::to_owned).to_vec();
    }
    let known = table(context, "SELECT v FROM db").await;
    known.lines().filter_map(|line| line.strip_prefix("| ")).map(|line| line[..1].to_owned()).collect()
}

/// Returns true if a query names an unknown text, which counts as one. See `estimated.slt`.
fn names_others(sql: &str, known: &[String]) -> bool {
    ["a", "b", "c", "d", "e", "f", "x"].into_iter().any(|text| {
        let named = sql.contains(&format!("b = '{text}'"))
            || sql.contains(&format!("b IN ('{text}'"))
            || (text == "c" && sql.contains("b IN ("));
        named && !known.iter().any(|known| known == text)
    })
}

async fn shown(context: &SessionContext) -> String {
    table(context, "SELECT * FROM r").await
}

/// A list of the values of a column is one for all rows: as a column of its own it would be repeated for each row of a batch.
#[tokio::test(flavor = "multi_thread")]
async fn lists_of_values_are_no_columns() {
    let context = session();
    let table =
        "CREATE TABLE t AS SELECT value AS id, value * 7919 % 3001 AS a, concat('t', value % 700) AS b, value % 5 AS s
                 FROM generate_series(1, 3000)";
    run(&context, table).await.unwrap();
    let release = "CREATE TABLE r AS SELECT * FROM m_invariant(t, 3, id => id, quasi => (a, b), sensitive => s)";
    run(&context, release).await.unwrap();
    for (asked, by) in [
        ("avg(a)", ""),
        ("sum(a), sum_stddev(a), avg(a)", ""),
        ("count(*) FILTER (WHERE a < 100), count(*) FILTER (WHERE a >= 100)", ""),
        ("count(*) FILTER (WHERE b < 't3'), count(*) FILTER (WHERE b >= 't3'), avg(a + 1), avg(a * a)", ""),
        ("a, count(*), avg(s)", " WHERE a > 7 AND b > 't1' GROUP BY a"),
        ("b, count(*), count(*) FILTER (WHERE b > 't2')", " GROUP BY b"),
    ] {
        let query = format!("SELECT {asked} FROM estimated(r){by}");
        let plan = context.sql(&query).await.unwrap().into_optimized_plan().unwrap();
        let mut subqueries = 0;
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                subqueries += usize::from(expr.exists(|expr| Ok(matches!(expr, Expr::ScalarSubquery(_))))?);
                let repeated = matches!(expr.clone().unalias_nested().data, Expr::ScalarSubquery(_));
                assert!(
                    !(repeated && matches!(node, LogicalPlan::Projection(_))),
                    "{query}: {}",
                    plan.display_indent()
                );
                Ok(TreeNodeRecursion::Continue)
            })
        })
        .unwrap();
        assert!(subqueries > 0, "{query}");
        assert!(!run(&context, &query).await.unwrap().is_empty());
    }
}

/// Statistics of a Parquet file turn a column of one value into a constant.
#[tokio::test(flavor = "multi_thread")]
async fn columns_of_one_value_in_files_are_estimated_as_in_memory() {
    let context = session();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("r.parquet");
    let file = file.display();
    run(&context, "CREATE TABLE people AS SELECT * FROM census(400)").await.unwrap();
    let calls = [
        // Groups of one size.
        "anatomy(people, 5, quasi => (age, education), sensitive => occupation, seed => 's')",
        // One group: all columns but the sensitive one have one value.
        "anatomy((SELECT 30 AS age, 'x' AS education, value AS occupation FROM generate_series(1, 4)), 4, quasi => (age, education), sensitive => occupation)",
        "mondrian(people, 400, quasi => (age, education, gender), sensitive => occupation, seed => 's')",
        "mondrian((SELECT 30 AS age, 'x' AS education, true AS gender, 1 AS occupation FROM people), 5, quasi => (age, education, gender), sensitive => occupation)",
        "mondrian((SELECT NULL::INT AS age, education, gender, occupation FROM people), 100, quasi => (age, education), sensitive => occupation, seed => 's')",
        "m_invariant(people, 2, id => person_id, quasi => (age, education, gender), sensitive => occupation, seed => 's')",
        "muco(people, id => person_id, quasi => (age, education, gender), sensitive => occupation, l => 5, delta => 0.2, seed => 's')",
    ];
    let questions = [
        "SELECT count(*), avg(age), sum(age) FROM t",
        "SELECT count(*) FILTER (WHERE age < 40), min(occupation) FROM t WHERE education IS NOT NULL",
        "SELECT education, count(*), count_stddev(*) FROM t GROUP BY education ORDER BY education",
        "SELECT age, count(*) AS n FROM t GROUP BY age ORDER BY age",
        "SELECT occupation, avg(age) FROM t WHERE age BETWEEN 20 AND 60 GROUP BY occupation ORDER BY occupation",
    ];
    let mut asked = 0;
    for call in calls {
        run(&context, &format!("CREATE OR REPLACE TABLE r AS SELECT * FROM {call}"))
            .await
            .unwrap_or_else(|e| panic!("{call}: {e}"));
        run(&context, &format!("COPY r TO '{file}'")).await.unwrap();
        for question in questions {
            let of = |release: &str, distribution: &str| {
                question.replace(" t", &format!(" estimated({release}{distribution})"))
            };
            for distribution in ["", ", distribution => 'uniform'"] {
                // What a release cannot answer, it cannot from a file either.
                let Ok(_) = run(&context, &of("r", distribution)).await else {
                    assert!(run(&context, &of(&format!("'{file}'"), distribution)).await.is_err());
                    continue;
                };
                let (here, there) = (
                    rounded(&context, &of("r", distribution)).await,
                    rounded(&context, &of(&format!("'{file}'"), distribution)).await,
                );
                assert_eq!(here, there, "{call}: {question}");
                asked += 1;
            }
        }
    }
    assert!(asked >= 50, "only {asked} questions were answered");
}

/// Returns the rows of a query with numbers of nine digits: sums come in any order.
async fn rounded(context: &SessionContext, sql: &str) -> Vec<String> {
    let mut rows = Vec::new();
    for batch in run(context, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}")) {
        for row in 0..batch.num_rows() {
            let cell = |column: &datafusion::arrow::array::ArrayRef| match column.data_type() {
                DataType::Float64 => format!("{:.8e}", column.as_primitive::<Float64Type>().value(row)),
                _ => datafusion::arrow::util::display::array_value_to_string(column, row).unwrap(),
            };
            rows.push(batch.columns().iter().map(cell).collect::<Vec<_>>().join(" "));
        }
    }
    rows
}
