//! Tests with an engine that scales a leaf by its bytes: without the guards it would make a release of each slice of the table.

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use datafusion_distributed::{DistributedExt, NetworkBoundaryExt, SessionStateBuilderExt, Worker};
use datafusion_proto::physical_plan::{DeduplicatingProtoConverter, PhysicalExtensionCodec};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;

use super::planner::{Local, Opened};
use super::{AnonymizeCodec, Workers, coordinator, stages, worker};
use crate::exec::{InputPlanner, as_operator};

/// A release to the left of a cross join, of a table in one partition: DataFusion puts nothing between the operator and the scan.
const LEFT_OF_A_JOIN: &str =
    "SELECT r.occupation, p.person_id FROM m_invariant(people, 4, id => person_id, quasi => (age, education),
    sensitive => occupation, seed => 1) r CROSS JOIN (SELECT * FROM people LIMIT 3) p";
const IN_CELLS: &str =
    "SELECT r.occupation, p.person_id FROM m_invariant(people, 4, id => person_id, quasi => (age, education),
    sensitive => occupation, seed => 1, cells => 5) r CROSS JOIN (SELECT * FROM people LIMIT 3) p";

async fn urls(servers: &mut JoinSet<()>) -> Workers {
    let mut urls = Vec::new();
    for _ in 0..2 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        urls.push(format!("http://{}", listener.local_addr().unwrap()));
        let service = Worker::from_session_builder(worker).into_worker_server();
        let server = Server::builder().add_service(service).serve_with_incoming(TcpListenerStream::new(listener));
        servers.spawn(async { server.await.unwrap() });
    }
    Workers::parse(urls).unwrap()
}

async fn session(servers: &mut JoinSet<()>, guarded: bool, people: &str) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(1);
    let mut builder = SessionStateBuilder::new().with_config(config).with_default_features();
    builder = builder.with_distributed_worker_resolver(urls(servers).await);
    builder = match guarded {
        true => coordinator(builder),
        false => {
            // The codec, and nothing that says in how many tasks its operators may run.
            let local = Local::of(None);
            builder = builder.with_distributed_user_codec(AnonymizeCodec);
            builder.config().get_or_insert_default().set_extension(Arc::new(InputPlanner(Arc::clone(&local))));
            builder.with_query_planner(Arc::new(Opened(local))).with_distributed_planner()
        }
    };
    let state = builder.with_distributed_file_scan_config_bytes_per_partition(1).unwrap().build();
    let context = SessionContext::new_with_state(state);
    crate::register_all(&context).unwrap();
    context.register_parquet("people", people, ParquetReadOptions::default()).await.unwrap();
    context
}

/// Returns the tasks of the stages that have an operator of ours.
fn tasks(plan: &Arc<dyn ExecutionPlan>) -> Vec<usize> {
    let mut found = Vec::new();
    plan.apply(|node| {
        if let Some(boundary) = node.as_network_boundary()
            && let Some(stage) = boundary.input_stage().local_plan()
        {
            let mut ours = false;
            stage
                .apply(|node| {
                    ours |= as_operator(node.as_ref()).is_some();
                    Ok(if node.is_network_boundary() { TreeNodeRecursion::Jump } else { TreeNodeRecursion::Continue })
                })
                .unwrap();
            if ours {
                found.push(boundary.input_stage().task_count());
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_guards_a_release_would_be_made_of_slices() {
    let here = tempfile::tempdir().unwrap();
    let people = here.path().join("people.parquet").display().to_string();
    let writer = SessionContext::new();
    crate::register_all(&writer).unwrap();
    let copy = format!("COPY (SELECT * FROM census(20000)) TO '{people}' STORED AS PARQUET");
    writer.sql(&copy).await.unwrap().collect().await.unwrap();

    let mut servers = JoinSet::new();
    let hazardous = session(&mut servers, false, &people).await;
    let plan = hazardous.sql(LEFT_OF_A_JOIN).await.unwrap().create_physical_plan().await.unwrap();
    assert_eq!(tasks(&plan), [2], "the engine has changed, and this test shows nothing");
    // Our planner would see it, and the operators do not run.
    let error = stages::guarded(&plan, &hazardous.state()).unwrap_err();
    assert!(error.to_string().contains("in several tasks"), "{error}");
    let error = hazardous.sql(LEFT_OF_A_JOIN).await.unwrap().collect().await.unwrap_err();
    assert!(error.to_string().contains("this is one of 2 tasks"), "{error}");

    let guarded = session(&mut servers, true, &people).await;
    for (sql, expected) in [(LEFT_OF_A_JOIN, 1), (IN_CELLS, 2)] {
        let plan = guarded.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
        assert_eq!(tasks(&plan).into_iter().max().unwrap_or(1), expected);
        let rows = guarded.sql(sql).await.unwrap().count().await.unwrap();
        assert!(rows >= 60_000, "{rows}");
    }
}

/// Operators that publish, or compute a table about releases, have no encoding: they stay on the coordinator.
#[tokio::test]
async fn what_stays_on_the_coordinator_has_no_encoding() {
    let context = SessionContext::new();
    crate::register_all(&context).unwrap();
    let here = tempfile::tempdir().unwrap();
    let mut statements = vec!["SELECT * FROM profile(census(100))".to_owned()];
    #[cfg(feature = "publication")]
    {
        let created = format!(
            "CREATE EXTERNAL TABLE p (person_id BIGINT, age INT, occupation INT) STORED AS PUBLICATION LOCATION '{}/p' OPTIONS
             ('begin' 'true', 'method' 'anatomy', 'l' '4', 'id' 'person_id', 'quasi' 'age', 'sensitive' 'occupation')",
            here.path().display()
        );
        context.sql(&created).await.unwrap().collect().await.unwrap();
        statements.push("INSERT INTO p SELECT person_id, age, occupation FROM census(100)".to_owned());
    }
    for sql in statements {
        let mut plan = context.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
        while as_operator(plan.as_ref()).is_none() {
            plan = Arc::clone(plan.children()[0]);
        }
        let converter = DeduplicatingProtoConverter::default();
        let error = AnonymizeCodec.try_encode(plan, &mut Vec::new(), &converter).unwrap_err();
        assert!(error.to_string().contains("belongs on the coordinator"), "{error}");
    }
}
