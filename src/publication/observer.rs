//! Fingerprints of what an INSERT reads, made while it is read.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use parking_lot::Mutex;

use super::blocking::blocking;
use super::fingerprint::{Fingerprint, RelationFingerprint};
use crate::microdata::Layout;

/// Batches that are fingerprinted while an earlier one is worked on.
const AHEAD: usize = 2;

/// Looks at the rows of an INSERT as they pass, on threads that may block.
#[derive(Debug)]
pub(crate) struct Observer {
    key: [u64; 2],
    snapshot: Arc<Mutex<Snapshot>>,
    updates: Option<Arc<Mutex<RelationFingerprint>>>,
}

#[derive(Debug)]
struct Snapshot {
    /// Of what decides whether the snapshot is another one than that of an earlier release.
    fingerprint: Fingerprint,
    /// Of whole rows.
    whole: Fingerprint,
    rows: u64,
}

/// Columns that decide whether a snapshot is another one than that of an earlier release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// All.
    All,
    /// All but the sensitive one, whose values are held within a period: a snapshot that is published because of a value alone tells whose it is, of a group
    /// of one person and counterfeits.
    Held,
}

impl Observer {
    /// Fingerprints are made with the key of the publication.
    pub(super) fn new(key: [u64; 2]) -> Self {
        let snapshot = Snapshot { fingerprint: Fingerprint::new(key), whole: Fingerprint::new(key), rows: 0 };
        Self { key, snapshot: Arc::new(Mutex::new(snapshot)), updates: None }
    }

    /// Returns the rows of the snapshot, looked at: at their first columns, those of the layout. `left_out` are columns that the INSERT does not name;
    /// where values are held, it is another snapshot that names others.
    pub(crate) fn snapshot(
        &self,
        rows: SendableRecordBatchStream,
        layout: &Layout,
        counted: Counted,
        left_out: &[String],
    ) -> SendableRecordBatchStream {
        let all: Vec<usize> = (0..layout.fields().count()).collect();
        let held = layout.sensitive.as_ref().filter(|_| counted == Counted::Held);
        let held = held.map(|_| usize::from(layout.identifier.is_some()) + layout.quasi.len());
        let columns: Vec<usize> = all.iter().copied().filter(|place| Some(*place) != held).collect();
        if held.is_some() {
            left_out.iter().for_each(|name| self.snapshot.lock().fingerprint.add_name(name));
        }
        look(rows, &self.snapshot, move |snapshot, batch| {
            snapshot.rows += batch.num_rows() as u64;
            if held.is_some() {
                snapshot.whole.add(&batch.project(&all)?)?;
            }
            snapshot.fingerprint.add(&batch.project(&columns)?)
        })
    }

    /// Returns the rows of the update relation, or of the domain, looked at.
    pub(crate) fn update_relation(
        &mut self,
        rows: SendableRecordBatchStream,
        domain: bool,
    ) -> SendableRecordBatchStream {
        let fingerprint = self.updates.insert(Arc::new(Mutex::new(RelationFingerprint::new(self.key, domain))));
        look(rows, fingerprint, RelationFingerprint::add)
    }

    pub(super) fn rows(&self) -> u64 {
        self.snapshot.lock().rows
    }

    pub(super) fn fingerprint(&self) -> String {
        self.snapshot.lock().fingerprint.finish()
    }

    /// Returns the same of whole rows, where some columns do not count.
    pub(super) fn whole(&self) -> Option<String> {
        let snapshot = self.snapshot.lock();
        (!snapshot.whole.is_of_nothing()).then(|| snapshot.whole.finish())
    }

    /// Returns the fingerprint of the update relation, so far.
    /// Fails when its thread is gone.
    pub(super) async fn updates(&self) -> Result<Option<String>> {
        let Some(updates) = self.updates.clone() else { return Ok(None) };
        blocking(move || Ok(updates.lock().finish())).await.map(Some)
    }
}

/// Passes the same rows. Each batch is shown to `seen` before it passes.
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
            blocking(move || seen(&mut to.lock(), &batch).map(|()| batch)).await
        }
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows.buffered(AHEAD)))
}
