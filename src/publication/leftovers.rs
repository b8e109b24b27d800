//! What killed attempts leave behind. Other draws of a published snapshot must not lie about.

use std::collections::HashSet;

use datafusion::common::Result;
use datafusion::object_store::path::Path;
use datafusion::object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use futures::StreamExt;

use super::announce::{CLAIMS, is_probe};
use super::desk::Desk;
use super::place::Place;
use super::protocol::STAGED;

/// Digits of a random name.
const DIGITS: usize = 32;
/// Probes, and files without a name yet, are in use unless they are older than this many seconds.
const PATIENCE: i64 = 24 * 3600;

impl Desk {
    /// Removes, as far as that is possible, what attempts at releases up to this one have left behind: files that are staged,
    /// entries that are not in the ledger (any more), claims, and, after a day, probes and files that never got a name.
    pub(crate) async fn sweep(&self, number: u64) {
        let done = |name: &str| number_of(name).is_some_and(|of| of <= number);
        let entries = self.standing.entries.iter().map(|kept| &kept.file);
        // Of what was held back only the newest counts; the rows before are published, suppressed, or in it.
        let known: HashSet<&str> = entries.chain(self.held_file()).map(|file| file.name.as_str()).collect();
        let private = self.private.store();
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
        for attempt in attempts {
            self.private.remove_empty(&Path::from_iter([STAGED, &attempt])).await;
        }
        let public = self.public.store();
        let mut gone = Vec::new();
        for object in below(public.as_ref(), CLAIMS).await {
            let name = object.location.filename().unwrap_or_default();
            let claimed = name.parse::<u64>().is_ok_and(|claimed| claimed <= number);
            if claimed || is_probe(name) && is_old(&object) {
                gone.push(object.location);
            }
        }
        delete(public.as_ref(), gone).await;
        for place in [&self.private, &self.public] {
            // Objects have their names from the start.
            if place.is_local() {
                sweep_unnamed(place).await;
            }
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

/// Whether nobody can still be about to use it.
fn is_old(object: &ObjectMeta) -> bool {
    chrono::Utc::now().timestamp() - object.last_modified.timestamp() > PATIENCE
}

/// Whether a private place has nothing in it but what an attempt at the first release may have left there.
pub(super) async fn only_leftovers(place: &Place) -> Result<bool> {
    let mut objects = place.store().list(None);
    while let Some(object) = objects.next().await {
        let object = object?;
        let mut parts = object.location.parts();
        let first = parts.next();
        let first = first.as_ref().map_or("", |part| part.as_ref());
        let name = object.location.filename().unwrap_or_default();
        let ours = match first {
            STAGED => parts.next().is_some_and(|attempt| number_of(attempt.as_ref()).is_some()),
            "_delta_log" => is_unnamed(name),
            _ => name == first && (is_unnamed(name) || name.strip_suffix(".parquet").and_then(number_of).is_some()),
        };
        if !ours {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The number in a name that [`numbered`](super::numbered) has made.
fn number_of(name: &str) -> Option<u64> {
    let (number, random) = name.split_once('-')?;
    if is_random(random) { number.parse().ok() } else { None }
}

fn is_random(name: &str) -> bool {
    name.len() == DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A file that a local store has not given its name yet.
pub(super) fn is_unnamed(name: &str) -> bool {
    name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp")).is_some_and(is_random)
}

async fn sweep_unnamed(place: &Place) {
    let store = place.store();
    let (log, claims) = (Path::from("_delta_log"), Path::from(CLAIMS));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_names_are_ours() {
        let random = "0123456789abcdef0123456789abcdef";
        assert_eq!(number_of(&format!("12-{random}")), Some(12));
        for other in ["1-january", "12", random, "x-0123456789abcdef0123456789abcdef", "-1"] {
            assert_eq!(number_of(other), None, "{other}");
        }
        assert!(is_unnamed(&format!(".{random}.tmp")));
        assert!(!is_unnamed(".notes.tmp") && !is_unnamed(&format!("{random}.tmp")));
    }
}
