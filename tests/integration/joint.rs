//! Readers who combine people: `disclosure(.., strength => 'joint')` on releases of every method of groups, over chains with churn.

use std::time::Instant;

use datafusion::prelude::SessionContext;

use super::support::{number, run, session};

const ROLES: &str = "id => person_id, quasi => (age, gender, education, birthplace), sensitive => occupation";

async fn execute(context: &SessionContext, sql: &str) {
    run(context, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// Returns the condition for eight or nine of ten people, others at each release.
fn present(release: usize) -> String {
    format!("(person_id * 7919 + {release} * (person_id % 4 + 1)) % 10 < 8")
}

/// Findings of a joint reader: versions of people, the fewest values that somebody has left, and the number of versions that are not decided.
struct Found {
    versions: i64,
    fewest: i64,
    undecided: i64,
}

async fn joint(context: &SessionContext, releases: &[String], more: &str) -> Found {
    let list = if releases.len() == 1 { releases[0].clone() } else { format!("({})", releases.join(", ")) };
    let strength = if more.contains("strength") { "" } else { "strength => 'joint', " };
    let call = format!("disclosure({list}, {strength}{ROLES}, {more})");
    let start = Instant::now();
    execute(context, "DROP TABLE IF EXISTS found").await;
    execute(context, &format!("CREATE TABLE found AS SELECT * FROM {call}")).await;
    let found = Found {
        versions: number(context, "SELECT count(*) FROM found").await,
        fewest: number(context, "SELECT min(remaining_count) FROM found").await,
        undecided: number(context, "SELECT count(*) FROM found WHERE cardinality(undecided) > 0").await,
    };
    let Found { versions, fewest, undecided } = &found;
    println!(
        "{} releases, {versions} versions of people: fewest values left {fewest}, {undecided} undecided, {:.2} s",
        releases.len(),
        start.elapsed().as_secs_f64()
    );
    found
}

/// Makes six private releases with everybody's entries kept, and returns their names.
async fn chain(context: &SessionContext, name: &str, call: impl Fn(&str) -> String) -> Vec<String> {
    let mut releases = Vec::new();
    for n in 0..6 {
        let previous = if n == 0 { String::new() } else { format!(", previous => {name}_ledger") };
        let release = format!("{name}{n}");
        let snapshot = format!("(SELECT * FROM {name}_people WHERE {})", present(n));
        let sql = format!("CREATE TABLE {release} AS SELECT * FROM {}", call(&format!("{snapshot}#{previous}")));
        let sql = sql.replace("#SEED", &format!("seed => {n}, private => true"));
        execute(context, &sql).await;
        let keep = if n == 0 { format!("CREATE TABLE {name}_ledger AS") } else { format!("INSERT INTO {name}_ledger") };
        let known =
            if n == 0 { String::new() } else { format!(" AND person_id NOT IN (SELECT person_id FROM {name}_ledger)") };
        let entries = format!("SELECT * FROM {release} WHERE person_id IS NOT NULL{known}");
        execute(context, &format!("{keep} {entries}")).await;
        releases.push(release);
    }
    releases
}

/// Returns the call of a method on what `chain` gives: a snapshot and what comes after it.
fn method(name: &str, first: &str, more: &str) -> impl Fn(&str) -> String {
    let (name, first, more) = (name.to_owned(), first.to_owned(), more.to_owned());
    move |input: &str| {
        let (snapshot, previous) = input.split_once('#').unwrap();
        format!("{name}({snapshot}, {first}, {ROLES}{more}, #SEED{previous})")
    }
}

/// Nobody has fewer than m values left, and m different ones. Signatures never change, so moving everybody to the
/// next value of theirs explains all releases as well.
#[tokio::test(flavor = "multi_thread")]
async fn m_invariant_keeps_m_values_for_everybody_together() {
    let context = session();
    for people in [300, 3000] {
        for (number, mode) in
            ["balance => 'minimal'", "groups => 'cohort'", "groups => 'close'"].into_iter().enumerate()
        {
            let name = format!("i{people}_{number}");
            execute(&context, &format!("CREATE TABLE {name}_people AS SELECT * FROM census({people}, {people})")).await;
            let more = format!(", {mode}, on_ineligible => 'counterfeit'");
            let releases = chain(&context, &name, method("m_invariant", "4", &more)).await;
            let found = joint(&context, &releases, &format!("original => {name}_people")).await;
            assert_eq!((found.undecided, found.fewest >= 4), (0, true), "{mode}");
            assert!(found.versions > 4 * people, "{}", found.versions);
        }
    }
}

/// A known value makes others certain in all releases of whole cohorts.
///
/// In one release alone it tells of nobody outside of the group. Close groups are for ever, so that all releases tell such a reader what the first one does.
#[tokio::test(flavor = "multi_thread")]
async fn one_known_value_makes_others_certain_over_releases() {
    let context = session();
    for (name, groups) in [("k", "cohort"), ("c", "close")] {
        execute(&context, &format!("CREATE TABLE {name}_people AS SELECT * FROM census(80, 5)")).await;
        let more = format!(", groups => '{groups}', on_ineligible => 'counterfeit'");
        let releases = chain(&context, name, method("m_invariant", "4", &more)).await;
        let one = told(&context, name, &releases[..1]).await;
        let five = told(&context, name, &releases[..5]).await;
        assert_eq!(one, 0, "{groups}: m = 4 leaves three to one known of a group");
        assert_eq!(five > 0, groups == "cohort", "{groups}: {five}; the documentation says so");
    }
}

/// Returns the highest number of others who become certain by one known value.
async fn told(context: &SessionContext, name: &str, releases: &[String]) -> i64 {
    let list = if releases.len() == 1 { releases[0].clone() } else { format!("({})", releases.join(", ")) };
    let ids =
        run(context, &format!("SELECT person_id FROM {} WHERE person_id IS NOT NULL", releases[0])).await.unwrap();
    let ids =
        datafusion::arrow::compute::cast(ids[0].column(0), &datafusion::arrow::datatypes::DataType::Int64).unwrap();
    let mut certain = Vec::new();
    for id in datafusion::arrow::array::AsArray::as_primitive::<datafusion::arrow::datatypes::Int64Type>(&ids).values()
    {
        let sql = format!(
            "SELECT count(DISTINCT person_id) FILTER (WHERE vulnerable AND person_id <> {id}) FROM disclosure({list}, original => {name}_people, \
             strength => 'joint', {ROLES}, facts => (SELECT person_id, occupation FROM {name}_people WHERE person_id = {id}))"
        );
        certain.push(number(context, &sql).await);
    }
    let (most, sum) = (certain.iter().max().copied().unwrap_or(0), certain.iter().sum::<i64>());
    println!(
        "m_invariant, m = 4, 80 people, {name}, {} releases: one known value makes {:.1} others certain on average, {most} at most",
        releases.len(),
        sum as f64 / certain.len() as f64
    );
    most
}

/// Releases of one table: as many values as `l` says, to readers who combine people as well.
#[tokio::test(flavor = "multi_thread")]
async fn single_releases_keep_l_values() {
    let context = session();
    execute(&context, "CREATE TABLE people AS SELECT * FROM census(2000, 3)").await;
    for (call, l) in [
        (format!("mondrian(people, 5, 5, {ROLES}, seed => 1, private => true)"), 5),
        (format!("mondrian(people, 4, 4, cuts => 'median', {ROLES}, seed => 1, private => true)"), 4),
        (format!("anatomy(people, 6, {ROLES}, seed => 1, private => true)"), 6),
    ] {
        let found = joint(&context, &[format!("(SELECT * FROM {call})")], "original => people").await;
        assert_eq!((found.versions, found.undecided, found.fewest >= l), (2000, 0, true), "{call}");
    }
}

/// Two mondrian releases of one table, each with l = 2, do not: combined they disclose, and more to who combines people.
#[tokio::test(flavor = "multi_thread")]
async fn releases_without_memory_do_not() {
    let context = session();
    execute(&context, "CREATE TABLE people AS SELECT * FROM census(400, 3)").await;
    for (name, cuts) in [("one", "tight"), ("two", "median")] {
        let sql = format!(
            "CREATE TABLE {name} AS SELECT * FROM mondrian(people, 4, 2, cuts => '{cuts}', {ROLES}, private => true)"
        );
        execute(&context, &sql).await;
    }
    let left = |strength: &str| {
        format!(
            "SELECT sum(remaining_count) FROM disclosure((one, two), original => people, strength => '{strength}', {ROLES})"
        )
    };
    let (alone, together) = (number(&context, &left("group")).await, number(&context, &left("joint")).await);
    println!(
        "two releases of mondrian, 400 people: {alone} values left to who looks at one at a time, {together} together"
    );
    assert!(together < alone);
}

/// Rows are generalized one by one and agree with l worlds: everybody has l values in some assignment of people to rows of all releases.
#[tokio::test(flavor = "multi_thread")]
async fn sequential_releases_keep_l_values() {
    let context = session();
    let l = 3;
    execute(&context, "CREATE TABLE people AS SELECT * FROM census(150, 4)").await;
    let sql = format!("CREATE TABLE worlds AS SELECT * FROM sequential_worlds(people, {l}, {ROLES}, seed => 1)");
    execute(&context, &sql).await;
    let mut releases = Vec::new();
    for (n, quasi) in ["age, birthplace", "gender, education", "age, education"].into_iter().enumerate() {
        let sql = format!(
            "CREATE TABLE s{n} AS SELECT * FROM sequential_release(people, worlds, id => person_id, quasi => ({quasi}), \
             sensitive => occupation, seed => {n})"
        );
        execute(&context, &sql).await;
        releases.push(format!("s{n}"));
    }
    let found = joint(&context, &releases, "strength => 'joint_cover', original => people").await;
    assert_eq!((found.versions, found.undecided, found.fewest >= l), (450, 0, true));
}
