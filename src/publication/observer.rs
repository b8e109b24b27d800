//! Fingerprints of what an INSERT reads, made while it is read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use super::blocking::blocking;
use super::fingerprint::{Fingerprint, RelationFingerprint};

/// Batches that are fingerprinted while an earlier one is worked on.
const AHEAD: usize = 2;

/// Looks at the rows of an INSERT as they pass by, on threads that may block.
#[derive(Debug)]
pub(crate) struct Observer {
    key: [u64; 2],
    snapshot: Arc<Mutex<Snapshot>>,
    /// That of the update relation, if there is one.
    updates: Option<Arc<Mutex<RelationFingerprint>>>,
}

#[derive(Debug)]
struct Snapshot {
    fingerprint: Fingerprint,
    rows: u64,
}

impl Observer {
    /// Fingerprints are made with the key of the publication.
    pub(super) fn new(key: [u64; 2]) -> Self {
        let snapshot = Snapshot { fingerprint: Fingerprint::new(key), rows: 0 };
        Self { key, snapshot: Arc::new(Mutex::new(snapshot)), updates: None }
    }

    /// The rows of the snapshot, looked at: at their first columns, so many as the microdata has.
    pub(crate) fn snapshot(&self, rows: SendableRecordBatchStream, columns: usize) -> SendableRecordBatchStream {
        let columns: Vec<usize> = (0..columns).collect();
        look(rows, &self.snapshot, move |snapshot, batch| {
            snapshot.rows += batch.num_rows() as u64;
            snapshot.fingerprint.add(&batch.project(&columns)?)
        })
    }

    /// The rows of the update relation, or of the domain, looked at.
    pub(crate) fn update_relation(
        &mut self,
        rows: SendableRecordBatchStream,
        domain: bool,
    ) -> SendableRecordBatchStream {
        let fingerprint = self.updates.insert(Arc::new(Mutex::new(RelationFingerprint::new(self.key, domain))));
        look(rows, fingerprint, RelationFingerprint::add)
    }

    /// Rows of the snapshot so far.
    pub(super) fn rows(&self) -> u64 {
        lock(&self.snapshot).rows
    }

    /// Fingerprint of the snapshot, so far.
    pub(super) fn fingerprint(&self) -> String {
        lock(&self.snapshot).fingerprint.finish()
    }

    /// Fingerprint of the update relation, so far.
    ///
    /// # Errors
    /// When its thread is gone.
    pub(super) async fn updates(&self) -> Result<Option<String>> {
        let Some(updates) = self.updates.clone() else { return Ok(None) };
        blocking(move || Ok(lock(&updates).finish())).await.map(Some)
    }
}

/// The same rows. Each batch is shown to `seen` before it passes.
fn look<T: Send + 'static>(
    rows: SendableRecordBatchStream,
    to: &Arc<Mutex<T>>,
    seen: impl Fn(&mut T, &RecordBatch) -> Result<()> + Send + Sync + 'static,
) -> SendableRecordBatchStream {
    let (to, schema, seen) = (Arc::clone(to), rows.schema(), Arc::new(seen));
    let rows = rows.map(move |batch| {
        let (to, seen) = (Arc::clone(&to), Arc::clone(&seen));
        async move {
            let batch = batch?;
            blocking(move || seen(&mut lock(&to), &batch).map(|()| batch)).await
        }
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows.buffered(AHEAD)))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
