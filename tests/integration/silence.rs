//! Tests what a reader learns from whether there is a release: tiny worlds, all of them, with the public table as the only thing that is looked at.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use datafusion::prelude::SessionContext;
use tempfile::TempDir;

use super::faults::{Fault, faulty};
use super::support::{error, number, run, session, table};

/// Values that can become each other, of two kinds that cannot.
const KINDS: [[&str; 2]; 2] = [["flu", "cold"], ["ulcer", "gastritis"]];

/// Declares an empty publication `ill`.
async fn begin(context: &SessionContext, options: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let location = directory.path().join("ill").display().to_string();
    run(context, "DROP TABLE IF EXISTS ill").await.unwrap();
    let sql = format!(
        "CREATE EXTERNAL TABLE ill (id BIGINT, age INT, disease VARCHAR) STORED AS PUBLICATION LOCATION '{location}'
         OPTIONS ({options}, 'm' '2', 'id' 'id', 'quasi' 'age', 'sensitive' 'disease')"
    );
    run(context, &sql).await.unwrap();
    directory
}

/// Makes the table `law`.
fn law() -> String {
    let pairs = KINDS.iter().flat_map(|[one, other]| [(one, other), (other, one)]);
    let pairs: Vec<String> = pairs.map(|(from, to)| format!("('{from}', '{to}', 0.3)")).collect();
    format!("CREATE TABLE law AS SELECT * FROM (VALUES {}) AS t(from_value, to_value, probability)", pairs.join(", "))
}

async fn insert(context: &SessionContext, period: u32, rows: &[(i64, i64, &str)]) {
    run(context, &format!("SET anonymize.period = '{period}'")).await.unwrap();
    run(context, &format!("INSERT INTO ill VALUES {}", values(rows))).await.unwrap();
}

fn values(rows: &[(i64, i64, &str)]) -> String {
    let rows: Vec<String> = rows.iter().map(|(id, age, disease)| format!("({id}, {age}, '{disease}')")).collect();
    rows.join(", ")
}

async fn releases(context: &SessionContext) -> i64 {
    number(context, "SELECT count(*) FROM releases(ill)").await
}

/// Somebody beside a counterfeit, whose value may change overnight and over the day. Snapshots of a day with the same people and ages: which releases there
/// are is the same in all worlds, so that silence tells neither that a value changed nor which kind it is of. When it followed the rows, the second release
/// of the second day was there in exactly those worlds in which the value changed over that day. `m_distinct` without `exact` draws counterfeits anew in every
/// release, while values stay within a day: of a second release of a day, whatever changed was a counterfeit. So it refuses one, whatever anybody has.
#[tokio::test(flavor = "multi_thread")]
async fn which_snapshots_of_a_day_are_published_tells_no_value() {
    let context = session();
    run(&context, &law()).await.unwrap();
    run(&context, "CREATE TABLE pairs AS SELECT from_value, to_value FROM law").await.unwrap();
    for (options, several) in [
        ("'method' 'dynamic', 'updates' 'law'", true),
        ("'method' 'm_distinct', 'exact' 'true', 'updates' 'law'", true),
        ("'method' 'm_distinct', 'disjoint' 'true', 'updates' 'pairs'", false),
    ] {
        let mut seen: BTreeMap<Vec<i64>, usize> = BTreeMap::new();
        for world in 0..16 {
            let [kind, start, night, day] = [0, 1, 2, 3].map(|bit| world >> bit & 1);
            let own = |changes: usize| KINDS[kind][(start + changes) % 2];
            let directory = begin(&context, options).await;
            let mut there = Vec::new();
            insert(&context, 1, &[(1, 40, own(0)), (2, 50, KINDS[1 - kind][0])]).await;
            insert(&context, 2, &[(1, 40, own(night))]).await;
            there.push(releases(&context).await);
            // The same people of the same age, in the evening and again; then somebody has a birthday; then it is the next day.
            insert(&context, 2, &[(1, 40, own(night + day))]).await;
            there.push(releases(&context).await);
            insert(&context, 2, &[(1, 40, own(night))]).await;
            there.push(releases(&context).await);
            let birthday = [(1, 41, own(night + day))];
            if several {
                insert(&context, 2, &birthday).await;
            } else {
                let text = error(&context, &format!("INSERT INTO ill VALUES {}", values(&birthday))).await;
                assert!(text.contains("publishes one snapshot of a period"), "{text}");
            }
            there.push(releases(&context).await);
            insert(&context, 3, &[(1, 41, own(night + day))]).await;
            there.push(releases(&context).await);
            assert_eq!(number(&context, "SELECT count(*) FROM audit(ill) WHERE NOT passed").await, 0, "{options}");
            *seen.entry(there).or_default() += 1;
            drop(directory);
        }
        let expected = if several { vec![2, 2, 2, 3, 4] } else { vec![2, 2, 2, 2, 3] };
        assert_eq!(seen, BTreeMap::from([(expected, 16)]), "{options}");
    }
    run(&context, "SET anonymize.period = ''").await.unwrap();
}

/// Holds what a reader sees of a publication: how many releases there are, and how many counterfeits the newest one has. Of everybody, how many worlds
/// look like that, and in how many of them they have cancer.
type Beliefs = BTreeMap<(i64, i64), (usize, [usize; 4])>;

/// Draws of each world. Groups are drawn by lot, so beliefs are frequencies.
const DRAWS: usize = 24;

/// Four people, two of whom have cancer and two are in remission; cancer can go into remission, and who is there in the second quarter is known. When a value
/// could change inside of its signature, two people in remission could not share their group any more, so that both stood beside a counterfeit, which told it.
/// Now a changed value is in no release, and what a reader sees of a refusal is the same whoever has changed and whatever they have.
#[tokio::test(flavor = "multi_thread")]
async fn values_that_change_inside_of_their_signature_are_not_published() {
    let context = session();
    for assignment in ["eligible", "drawn"] {
        for present in [&[0_usize, 1, 2, 3][..], &[0, 1, 2], &[0, 3]] {
            let (mut stayed, mut changed) = (Beliefs::new(), Beliefs::new());
            for ill in [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]] {
                for changes in 0..4 {
                    let now: Vec<usize> = (0..2).filter(|bit| changes >> bit & 1 == 0).map(|bit| ill[bit]).collect();
                    let changes = present.iter().filter(|person| ill.contains(person) && !now.contains(person)).count();
                    if changes == 0 && now.len() < 2 {
                        continue; // Of who is not there.
                    }
                    // A refusal draws nothing.
                    let (beliefs, draws) = if changes == 0 { (&mut stayed, DRAWS) } else { (&mut changed, 1) };
                    for _ in 0..draws {
                        let seen = quarters(&context, assignment, present, [&ill, &now], changes).await;
                        let (worlds, with_cancer) = beliefs.entry(seen).or_default();
                        *worlds += 1;
                        ill.iter().for_each(|&person| with_cancer[person] += 1);
                    }
                }
            }
            let what = format!("{assignment}, {present:?}: {stayed:?} {changed:?}");
            assert!(changed.keys().eq([&(1, 0)]), "{what}");
            // Half of them have it, as far as can be seen: within four and a half standard deviations of draws.
            let told = |(worlds, with_cancer): &(usize, [usize; 4])| {
                with_cancer
                    .iter()
                    .any(|&with| (2.0 * with as f64 - *worlds as f64).abs() > 4.5 * (*worlds as f64).sqrt())
            };
            assert!(stayed.values().all(|(worlds, _)| *worlds > 4), "too few to tell anything: {what}");
            assert!(stayed.keys().all(|(releases, _)| *releases == 2) && !stayed.values().any(told), "{what}");
        }
    }
}

/// Publishes two quarters, in which these people have cancer. Returns what a reader sees.
async fn quarters(
    context: &SessionContext,
    assignment: &str,
    present: &[usize],
    with_cancer: [&[usize]; 2],
    changes: usize,
) -> (i64, i64) {
    let rows = |people: &[usize], age: i64, with_cancer: &[usize]| {
        let value = |person: &usize| if with_cancer.contains(person) { "cancer" } else { "remission" };
        let rows: Vec<_> = people.iter().map(|person| (*person as i64, age + *person as i64, value(person))).collect();
        format!("INSERT INTO ill VALUES {}", values(&rows))
    };
    let _directory = begin(context, &format!("'method' 'm_invariant', 'assignment' '{assignment}'")).await;
    run(context, &rows(&[0, 1, 2, 3], 40, with_cancer[0])).await.unwrap();
    let second = rows(present, 41, with_cancer[1]);
    if changes > 0 {
        let text = error(context, &second).await;
        assert!(text.contains(&format!("m_invariant: {changes} people have another sensitive value")), "{text}");
        assert!(!text.contains("cancer") && !text.contains("remission"), "{text}");
    } else {
        run(context, &second).await.unwrap();
    }
    let newest = "SELECT last_value(counterfeits ORDER BY release) FROM releases(ill)";
    (releases(context).await, number(context, newest).await)
}

/// An INSERT that names other columns is another snapshot, whatever people have; and what was held stays held.
#[tokio::test(flavor = "multi_thread")]
async fn columns_that_are_not_named_count() {
    let context = session();
    run(&context, &law()).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let location = directory.path().join("ill").display().to_string();
    let sql = format!(
        "CREATE EXTERNAL TABLE ill (id BIGINT, age INT, sex INT, disease VARCHAR) STORED AS PUBLICATION LOCATION '{location}'
         OPTIONS ('method' 'dynamic', 'm' '2', 'updates' 'law', 'id' 'id', 'quasi' 'age, sex', 'sensitive' 'disease', 'period' '1')"
    );
    run(&context, &sql).await.unwrap();
    run(&context, "INSERT INTO ill VALUES (1, 40, 0, 'flu'), (2, 50, 1, 'ulcer')").await.unwrap();
    // Fewer columns are another release, and the same ones again are none.
    for disease in ["flu", "cold"] {
        let sql = format!("INSERT INTO ill (id, age, disease) VALUES (1, 40, '{disease}'), (2, 50, 'ulcer')");
        run(&context, &sql).await.unwrap();
        assert_eq!(releases(&context).await, 2);
    }
    run(&context, "INSERT INTO ill VALUES (1, 40, 0, 'cold'), (2, 50, 1, 'ulcer')").await.unwrap();
    assert_eq!(releases(&context).await, 2);
    run(&context, "INSERT INTO ill VALUES (1, 41, 0, 'cold'), (2, 50, 1, 'ulcer')").await.unwrap();
    assert_eq!(releases(&context).await, 3);
    let diseases = table(&context, "SELECT disease FROM release(ill)").await;
    assert!(diseases.contains("flu") && !diseases.contains("cold"), "{diseases}");
}

/// A failed job that runs again with another value makes one release of the day. It fails at any of its writes;
/// whether the release was decided or not, it is as if the value had stayed.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_runs_again_with_another_value_makes_no_release_more() {
    const DECLARED: &str = "CREATE EXTERNAL TABLE ill (id BIGINT, age INT, disease VARCHAR) STORED AS PUBLICATION LOCATION 'fault://disk/ill/'
        OPTIONS ('method' 'dynamic', 'm' '2', 'updates' 'law', 'id' 'id', 'quasi' 'age', 'sensitive' 'disease')";
    for fatal in 1.. {
        let here = tempfile::tempdir().unwrap();
        let declared = async |fatal: usize| {
            let (context, store) = faulty(here.path(), fatal, Fault::After);
            run(&context, &law()).await.unwrap();
            run(&context, DECLARED).await.map(|_| (context, store))
        };
        let (context, _) = declared(usize::MAX).await.unwrap();
        insert(&context, 1, &[(1, 40, "flu"), (2, 50, "ulcer")]).await;
        let Ok((context, store)) = declared(fatal).await else { continue };
        run(&context, "SET anonymize.period = '2'").await.unwrap();
        let failed = run(&context, "INSERT INTO ill VALUES (1, 40, 'flu')").await.is_err();
        let writes = store.writes.load(Ordering::SeqCst);
        let (context, _) = declared(usize::MAX).await.unwrap();
        for disease in ["cold", "flu", "cold"] {
            insert(&context, 2, &[(1, 40, disease)]).await;
            assert_eq!(releases(&context).await, 2, "write {fatal}");
        }
        assert_eq!(number(&context, "SELECT count(*) FROM audit(ill) WHERE NOT passed").await, 0, "write {fatal}");
        if writes < fatal {
            assert!(!failed && fatal > 4, "a job has more than {writes} writes");
            break;
        }
    }
}
