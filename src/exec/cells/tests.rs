//! A release in cells is the releases of its cells, whatever the engine does below.

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::datasource::MemTable;
use datafusion::execution::memory_pool::{FairSpillPool, MemoryConsumer, MemoryPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use rand::Rng;
use std::sync::Arc;

use super::{in_a_cell, tags};
use crate::exec::Seed;
use crate::methods::anatomy::Anatomy;
use crate::methods::m_distinct::MDistinct;
use crate::methods::m_invariance::MInvariance;
use crate::methods::{AnyMethod, Monitor, SnapshotBuilder};
use crate::microdata::{Layout, Roles};
use crate::release::{Published, RowOrder};

const CELLS: u32 = 7;
const ROLES: &str = "id => person_id, quasi => (age, gender, education), sensitive => occupation";
const COLUMNS: &str = "person_id, age, gender, education, occupation";

/// Returns a session with people of two times: some are gone at the second one, others have come; and what values can become.
async fn session(partitions: usize, limit: Option<usize>, people: usize) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(1000);
    let mut runtime = RuntimeEnvBuilder::new();
    if let Some(limit) = limit {
        runtime = runtime.with_memory_pool(Arc::new(FairSpillPool::new(limit)));
        config = config.with_sort_spill_reservation_bytes(1_000_000);
    }
    let context = SessionContext::new_with_config_rt(config, runtime.build_arc().unwrap());
    crate::register_all(&context).unwrap();
    for table in [
        format!("CREATE TABLE everybody AS SELECT * FROM census({people}, seed => 7)"),
        "CREATE TABLE people AS SELECT * FROM everybody WHERE person_id % 5 <> 0".to_owned(),
        "CREATE TABLE later AS SELECT * FROM everybody WHERE person_id % 5 <> 1".to_owned(),
        "CREATE TABLE updates AS
         WITH occupations AS (SELECT DISTINCT occupation FROM everybody)
         SELECT a.occupation AS from_value, b.occupation AS to_value
         FROM occupations a JOIN occupations b ON a.occupation - a.occupation % 2 = b.occupation - b.occupation % 2"
            .to_owned(),
    ] {
        rows(&context, &table).await;
    }
    context
}

async fn rows(context: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    let rows = context.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn texts(batches: &[RecordBatch]) -> Vec<String> {
    let mut texts = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let values = batch.columns().iter().map(|column| array_value_to_string(column, row).unwrap());
            texts.push(values.collect::<Vec<_>>().join("|"));
        }
    }
    texts
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort_unstable();
    texts
}

/// Returns the union of the method's releases of the cells, each made by itself.
async fn of_cells(
    context: &SessionContext,
    method: &AnyMethod,
    table: &str,
    previous: Option<&str>,
    updates: bool,
    seed: &Seed,
    like: &RecordBatch,
) -> Vec<String> {
    let mut roles = Roles::default();
    roles.id = Some("person_id".to_owned());
    roles.quasi = ["age", "gender", "education"].map(str::to_owned).to_vec();
    roles.sensitive = Some("occupation".to_owned());
    let tags = tags(seed, CELLS);
    let mut all = Vec::new();
    for cell in 0..CELLS {
        let of = format!("anonymize_cell(person_id, {CELLS}) = {cell}");
        let microdata = rows(context, &format!("SELECT {COLUMNS} FROM {table} WHERE {of}")).await;
        let layout = Layout::try_new(&microdata[0].schema(), &roles).unwrap();
        let mut builder = SnapshotBuilder::try_new(layout, method.state()).unwrap();
        for batch in &microdata {
            builder.microdata.append(batch).unwrap();
        }
        if let Some(previous) = previous {
            let labels = match method {
                AnyMethod::MDistinct(_) => ", signature_label::BIGINT AS signature_label",
                _ => ", occupation, ring",
            };
            let entries =
                format!("SELECT person_id, signature{labels} FROM {previous} WHERE person_id IS NOT NULL AND {of}");
            for batch in rows(context, &entries).await {
                builder.append_previous(&batch).unwrap();
            }
        }
        if updates {
            for batch in rows(context, "SELECT from_value, to_value FROM updates").await {
                builder.microdata.append_updates(&batch).unwrap();
            }
        }
        let mut rng = seed.rng_of_cell(cell);
        let (microdata, state) = builder.finish(rng.random()).unwrap();
        let release = method.release(microdata, &state, &Monitor::default(), &mut rng).unwrap();
        let published = Published::new(release, like.schema(), RowOrder::Random, &mut rng).in_cell(tags[cell as usize]);
        all.extend(texts(&[published.batch(0, published.len()).unwrap()]));
    }
    sorted(all)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_that_of_its_cells() {
    let methods = [
        ("m_invariant", ", 4", "", AnyMethod::MInvariance(MInvariance::new(4))),
        ("m_distinct", ", 3", ", updates => updates", AnyMethod::MDistinct(MDistinct::new(3))),
        ("anatomy", ", 4", "", AnyMethod::Anatomy(Anatomy::new(4))),
    ];
    let mut found: Vec<Vec<Vec<String>>> = Vec::new();
    for partitions in [1, 2, 5] {
        let context = session(partitions, None, 20_000).await;
        let mut of_partitions = Vec::new();
        for (name, bound, updates, method) in &methods {
            let call = |table: &str, seed: &str, previous: &str| {
                format!(
                    "SELECT * FROM {name}({table}{bound}, {ROLES}{updates}{previous}, private => true, seed => '{seed}', cells => {CELLS})"
                )
            };
            let first = rows(&context, &call("people", "a", "")).await;
            let expected =
                of_cells(&context, method, "people", None, !updates.is_empty(), &Seed::from_text("a"), &first[0]).await;
            assert_eq!(sorted(texts(&first)), expected, "{name}");
            // Rows come in an order that depends on nothing but the seed.
            of_partitions.push(texts(&first));
            if method.state().is_none() {
                continue;
            }
            let table = concat_batches(&first[0].schema(), &first).unwrap();
            context.register_batch(format!("{name}_1"), table).unwrap();
            let previous = format!("{name}_1");
            let second = rows(&context, &call("later", "b", &format!(", previous => {previous}"))).await;
            let seed = Seed::from_text("b");
            let expected =
                of_cells(&context, method, "later", Some(&previous), !updates.is_empty(), &seed, &second[0]).await;
            assert_eq!(sorted(texts(&second)), expected, "{name}, second release");
            of_partitions.push(texts(&second));
        }
        found.push(of_partitions);
    }
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
}

fn spills(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.spill_count()).unwrap_or(0);
    own + plan.children().into_iter().map(spills).sum::<usize>()
}

/// A table, and a ledger, that do not fit: the engine spills them, and the release is the same.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_spilled() {
    let first = format!("m_invariant(people, 4, {ROLES}, private => true, seed => 'a', cells => 64)");
    let second =
        format!("m_invariant(later, 4, {ROLES}, private => true, seed => 'b', previous => first, cells => 64)");
    let mut found = Vec::new();
    // The engine shares the limit among the sorts of all partitions, two for each here. One whose share is below what is sorted in place
    // (1 MB) may not be able to spill: so there is more for two partitions, and no limit for five.
    for (limit, partitions) in [(None, 2), (None, 5), (Some(12 << 20), 1), (Some(20 << 20), 2)] {
        let context = session(partitions, limit, 100_000).await;
        let made = rows(&context, &format!("SELECT * FROM {first}")).await;
        let first = MemTable::try_new(made[0].schema(), vec![made.clone()]).unwrap();
        context.register_table("first", Arc::new(first)).unwrap();
        let mut releases = vec![texts(&made)];
        let plan = context.sql(&format!("SELECT * FROM {second}")).await.unwrap();
        let plan = plan.create_physical_plan().await.unwrap();
        releases.push(texts(&collect(Arc::clone(&plan), context.task_ctx()).await.unwrap()));
        assert_eq!(spills(&plan) > 0, limit.is_some(), "{limit:?}, {partitions} partitions");
        assert_eq!(context.runtime_env().memory_pool.reserved(), 0);
        found.push(releases);
    }
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
}

/// The error says what to reduce if memory does not suffice.
#[test]
fn what_does_not_fit_at_all_says_what_may() {
    let five = std::num::NonZeroUsize::new(5).unwrap();
    let pools: [Arc<dyn MemoryPool>; 2] = [
        Arc::new(FairSpillPool::new(1000)),
        // As in the shell: it lists who holds memory.
        Arc::new(TrackConsumersPool::new(FairSpillPool::new(1000), five)),
    ];
    let cases = [("m_invariant", false), ("ExternalSorter[0]", true), ("ExternalSorterMerge[3]", true)];
    for ((consumer, sorts), pool) in cases.into_iter().flat_map(|case| pools.iter().map(move |pool| (case, pool))) {
        let sort = MemoryConsumer::new("ExternalSorter[7]").register(pool);
        sort.try_grow(500).unwrap();
        let refused = MemoryConsumer::new(consumer).register(pool).try_grow(1 << 20).unwrap_err();
        let error = in_a_cell(refused, "m_invariant", 64).to_string();
        assert!(
            error.contains("m_invariant: a cell does not fit; smaller ones take less memory (cells => 128)"),
            "{error}"
        );
        assert_eq!(
            error.ends_with("; so do fewer sorts at a time (SET datafusion.execution.target_partitions = 1)"),
            sorts
        );
    }
}

/// Cells by place: the same on any number of partitions, and where the engine spills; no group is in two cells, and none is too small.
#[tokio::test(flavor = "multi_thread")]
async fn places_depend_on_nothing_but_the_table() {
    for call in [
        "mondrian(people, 10, 3, id => person_id, quasi => (age, gender, education, birthplace), sensitive => occupation",
        "muco(people, 0.3, 4, id => person_id, quasi => (age, education), sensitive => occupation",
    ] {
        let mut found = Vec::new();
        for (limit, partitions) in [(None, 1), (None, 2), (Some(12 << 20), 2), (None, 5)] {
            let context = session(partitions, limit, 60_000).await;
            let call = format!("SELECT * FROM {call}, private => true, seed => 'a', cells => 16)");
            let plan = context.sql(&call).await.unwrap().create_physical_plan().await.unwrap();
            let release = collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
            assert_eq!(spills(&plan) > 0, limit.is_some(), "{limit:?}, {partitions} partitions");
            // The join keeps the tree as long as there is a plan.
            drop(plan);
            assert_eq!(context.runtime_env().memory_pool.reserved(), 0);
            if call.starts_with("mondrian") {
                context.register_batch("release", concat_batches(&release[0].schema(), &release).unwrap()).unwrap();
                let groups = "SELECT count(*), max(group_size)::BIGINT FROM release GROUP BY group_id";
                for batch in rows(&context, groups).await {
                    let column = |place: usize| batch.column(place).as_primitive::<Int64Type>().values();
                    assert!(column(0).iter().zip(column(1)).all(|(rows, size)| rows == size && *rows >= 10));
                }
                let cells = rows(&context, "SELECT count(DISTINCT group_id >> 32) FROM release").await;
                assert_eq!(cells[0].column(0).as_primitive::<Int64Type>().value(0), 16);
            }
            found.push(texts(&release));
        }
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
    }
}

/// Cells and groups by `k` alone do not depend on sensitive values. This holds for a table with more different rows than a sample, too.
#[tokio::test(flavor = "multi_thread")]
async fn places_with_k_alone_follow_from_quasi_identifiers() {
    let context = session(2, None, 100_000).await;
    let other = "CREATE TABLE others AS SELECT * EXCLUDE (occupation), (occupation + person_id * 7) % 50 AS occupation FROM people";
    rows(&context, other).await;
    let mut found = Vec::new();
    for table in ["people", "others"] {
        let groups = format!(
            "SELECT age, education, birthplace, group_size, count(*) FROM mondrian({table}, 50, id => person_id, \
             quasi => (age, education, birthplace), sensitive => occupation, seed => 'a', cells => 16) \
             GROUP BY age, education, birthplace, group_size"
        );
        found.push(sorted(texts(&rows(&context, &groups).await)));
    }
    assert!(found[0].len() > 500, "{} groups", found[0].len());
    assert!(found[0] == found[1], "other groups for other values");
}

/// Rows leave cell by cell: in an order of cells that has nothing to do with where they are. The sample is the whole table, so with any seed
/// the cells are the same.
#[tokio::test(flavor = "multi_thread")]
async fn places_come_in_an_order_that_is_drawn() {
    let context = session(1, None, 30_000).await;
    let mut found = Vec::new();
    for seed in ["a", "b"] {
        let call = format!(
            "SELECT (group_id >> 32)::BIGINT AS cell FROM mondrian(people, 10, quasi => (age, gender, education, birthplace), \
             id => person_id, seed => '{seed}', cells => 16)"
        );
        let mut sizes: Vec<(i64, usize)> = Vec::new();
        for batch in rows(&context, &call).await {
            for &cell in batch.column(0).as_primitive::<Int64Type>().values() {
                match sizes.last_mut().filter(|(last, _)| *last == cell) {
                    Some((_, rows)) => *rows += 1,
                    None => sizes.push((cell, 1)),
                }
            }
        }
        found.push(sizes.into_iter().map(|(_, rows)| rows).collect::<Vec<_>>());
    }
    assert_eq!(found[0].len(), 16);
    assert_ne!(found[0], found[1]);
    found.iter_mut().for_each(|sizes| sizes.sort_unstable());
    assert_eq!(found[0], found[1]);
}

/// Groups of different cells have different numbers. A reader without the seed knows no order of cells in them.
#[tokio::test(flavor = "multi_thread")]
async fn numbers_of_groups_are_unique() {
    let context = session(2, None, 5_000).await;
    let call = format!("m_invariant(people, 4, {ROLES}, private => true, seed => 'a', cells => {CELLS})");
    let release = rows(
        &context,
        &format!("SELECT group_id, count(*) AS rows, max(group_size)::BIGINT, count(DISTINCT anonymize_cell(person_id, {CELLS})) FROM {call} GROUP BY group_id"),
    )
    .await;
    let mut tags_seen = std::collections::BTreeSet::new();
    for batch in &release {
        let column = |place: usize| batch.column(place).as_primitive::<Int64Type>().values();
        assert_eq!(column(1), column(2));
        assert!(column(3).iter().all(|cells| *cells == 1));
        tags_seen.extend(column(0).iter().map(|group| group >> 32));
    }
    assert_eq!(tags_seen.into_iter().collect::<Vec<_>>(), (0..i64::from(CELLS)).collect::<Vec<_>>());
    assert_ne!(tags(&Seed::from_text("a"), 64), tags(&Seed::from_text("b"), 64));
}
