//! Removal of what killed attempts have left behind: other draws of a published snapshot must not lie about.

use std::collections::HashSet;

use datafusion::object_store::path::Path;
use datafusion::object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use futures::StreamExt;

use super::open::OpenPublication;
use super::paths::{CLAIMS, LOG, STAGED, attempt, is_probe, is_unnamed, number_of};
use super::place::Place;

/// Age in seconds up to which probes, and files without a name, are in use.
const PATIENCE: i64 = 24 * 3600;

/// Removes leftovers of attempts at releases up to this one, as far as possible. These are staged files, entries
/// that are not in the ledger (any more), claims, and, after a day, probes and files that never got a name.
pub(super) async fn vacuum(open: &OpenPublication, number: u64) {
    let done = |name: &str| number_of(name).is_some_and(|of| of <= number);
    let entries = open.state.entries.iter().map(|kept| &kept.file);
    // Of what was held back only the newest counts; the rows before are published, suppressed, or in it. So it is with what is believed.
    let known: HashSet<&str> =
        entries.chain(open.held_file()).chain(open.beliefs_file()).map(|file| file.name.as_str()).collect();
    let private = open.private.store();
    let mut attempts = HashSet::new();
    let mut gone = Vec::new();
    for object in below(private.as_ref(), STAGED).await {
        let Some(attempt) = object.location.parts().nth(1) else { continue };
        if done(attempt.as_ref()) {
            attempts.insert(attempt.as_ref().to_owned());
            gone.push(object.location);
        }
    }
    for object in directly_in(private.as_ref(), None).await {
        let name = object.location.filename().unwrap_or_default();
        if name.strip_suffix(".parquet").is_some_and(done) && !known.contains(name) {
            gone.push(object.location);
        }
    }
    delete(private.as_ref(), gone).await;
    for name in attempts {
        open.private.remove_empty(&attempt(&name)).await;
    }
    let public = open.public.store();
    let mut gone = Vec::new();
    for object in below(public.as_ref(), CLAIMS).await {
        let name = object.location.filename().unwrap_or_default();
        let claimed = name.parse::<u64>().is_ok_and(|claimed| claimed <= number);
        if claimed || is_probe(name) && is_old(&object) {
            gone.push(object.location);
        }
    }
    delete(public.as_ref(), gone).await;
    for place in [&open.private, &open.public] {
        // Objects have their names from the start.
        if place.is_local() {
            delete_unnamed(place).await;
        }
    }
}

/// Deletes objects, several at a time where the store can; some may be gone already.
async fn delete(store: &dyn ObjectStore, gone: Vec<Path>) {
    if !gone.is_empty() {
        let mut deleted = store.delete_stream(futures::stream::iter(gone.into_iter().map(Ok)).boxed());
        while deleted.next().await.is_some() {}
    }
}

/// Returns true if nobody can still be about to use it.
fn is_old(object: &ObjectMeta) -> bool {
    chrono::Utc::now().timestamp() - object.last_modified.timestamp() > PATIENCE
}

async fn delete_unnamed(place: &Place) {
    let store = place.store();
    let (log, claims) = (Path::from(LOG), Path::from(CLAIMS));
    for directory in [None, Some(&log), Some(&claims)] {
        for object in directly_in(store.as_ref(), directory).await {
            if is_old(&object) && is_unnamed(object.location.filename().unwrap_or_default()) {
                let _ = store.delete(&object.location).await;
            }
        }
    }
}

async fn below(store: &dyn ObjectStore, directory: &str) -> Vec<ObjectMeta> {
    let objects = store.list(Some(&Path::from(directory)));
    objects.filter_map(|object| async { object.ok() }).collect().await
}

async fn directly_in(store: &dyn ObjectStore, directory: Option<&Path>) -> Vec<ObjectMeta> {
    store.list_with_delimiter(directory).await.map_or_else(|_| Vec::new(), |listed| listed.objects)
}
