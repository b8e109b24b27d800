//! A cache of what this process has read of a table's log.
//!
//! A commit or a checkpoint never changes once it is there, but Delta Lake reads the same ones several times for one statement. In
//! an object store each time is a request. So whatever was read of a log is kept as long as the session has its store, and
//! believed as long as listings show the same object: another size, time or tag, or none, and it is read again.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock, Weak};

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::object_store::memory::InMemory;
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;

/// Digits of a version in the names of Delta Lake.
const VERSION_DIGITS: usize = 20;

/// A log of a store, and what is known of it.
type Log = (Weak<dyn ObjectStore>, Path, Arc<Seen>);

/// The logs that this process knows. Stores that are gone take theirs with them.
static LOGS: LazyLock<Mutex<Vec<Log>>> = LazyLock::new(Mutex::default);

/// Objects of a log as they were read.
#[derive(Debug, Default)]
struct Seen {
    contents: InMemory,
    described: Mutex<HashMap<Path, ObjectMeta>>,
}

impl Seen {
    /// Forgets what a listing of everything after `offset` shows otherwise, or not at all.
    fn compare(&self, offset: Option<&Path>, listed: &[ObjectMeta]) {
        let listed: HashMap<&Path, &ObjectMeta> = listed.iter().map(|meta| (&meta.location, meta)).collect();
        let same = |known: &ObjectMeta| {
            listed.get(&known.location).is_some_and(|meta| {
                (meta.size, &meta.e_tag, meta.last_modified) == (known.size, &known.e_tag, known.last_modified)
            })
        };
        self.described.lock().retain(|path, known| offset.is_some_and(|offset| path <= offset) || same(known));
    }
}

/// A store whose log at one place is read once.
#[derive(Debug, Clone)]
pub(super) struct CachedLog {
    inner: Arc<dyn ObjectStore>,
    log: Path,
    seen: Arc<Seen>,
}

impl CachedLog {
    /// Returns a store of the session, with the log in a directory of it.
    pub(super) fn new(inner: Arc<dyn ObjectStore>, log: Path) -> Self {
        let mut logs = LOGS.lock();
        logs.retain(|(store, ..)| store.strong_count() > 0);
        let store = Arc::downgrade(&inner);
        let known = logs.iter().find(|(other, path, _)| other.ptr_eq(&store) && *path == log);
        let seen = match known {
            Some((.., seen)) => Arc::clone(seen),
            None => {
                let seen = Arc::<Seen>::default();
                logs.push((store, log.clone(), Arc::clone(&seen)));
                seen
            }
        };
        Self { inner, log, seen }
    }

    /// Returns true if this is a commit or a checkpoint of the log.
    fn is_fixed(&self, location: &Path) -> bool {
        let name = location.filename().unwrap_or_default().as_bytes();
        let numbered = name.len() > VERSION_DIGITS && name[..VERSION_DIGITS].iter().all(u8::is_ascii_digit);
        numbered && location.prefix_matches(&self.log)
    }

    /// Reads an object of the log, unless it is known.
    async fn learn(&self, location: &Path) -> Result<ObjectMeta> {
        if let Some(known) = self.seen.described.lock().get(location) {
            return Ok(known.clone());
        }
        let found = self.inner.get(location).await?;
        let meta = found.meta.clone();
        let contents = found.bytes().await?;
        self.seen.contents.put(location, contents.into()).await?;
        self.seen.described.lock().insert(location.clone(), meta.clone());
        Ok(meta)
    }

    fn compared(
        &self,
        listing: BoxStream<'static, Result<ObjectMeta>>,
        offset: Option<Path>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let seen = Arc::clone(&self.seen);
        let all = async move {
            let listed: Vec<ObjectMeta> = listing.try_collect().await?;
            seen.compare(offset.as_ref(), &listed);
            Ok::<_, Error>(futures::stream::iter(listed.into_iter().map(Ok)))
        };
        futures::stream::once(all).try_flatten().boxed()
    }
}

impl fmt::Display for CachedLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CachedLog({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for CachedLog {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if !self.is_fixed(location) {
            return self.inner.get_opts(location, options).await;
        }
        let meta = self.learn(location).await?;
        let found = self.seen.contents.get_opts(location, options).await?;
        Ok(GetResult { meta, ..found })
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if !self.is_fixed(location) {
            return self.inner.get_ranges(location, ranges).await;
        }
        self.learn(location).await?;
        self.seen.contents.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match prefix == Some(&self.log) {
            true => self.compared(self.inner.list(prefix), None),
            false => self.inner.list(prefix),
        }
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        let listing = self.inner.list_with_offset(prefix, offset);
        if prefix == Some(&self.log) { self.compared(listing, Some(offset.clone())) } else { listing }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.inner.rename_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn text(store: &impl ObjectStore, path: &Path) -> Result<String> {
        Ok(String::from_utf8(store.get(path).await?.bytes().await?.to_vec()).unwrap())
    }

    async fn list(store: &impl ObjectStore, log: &Path) -> usize {
        store.list(Some(log)).try_collect::<Vec<_>>().await.unwrap().len()
    }

    #[tokio::test]
    async fn what_is_listed_otherwise_is_read_again() {
        let inner: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let log = Path::from("lake/hospital/_delta_log");
        let commit = log.clone().join("00000000000000000001.json");
        inner.put(&commit, "one".into()).await.unwrap();
        let store = || CachedLog::new(Arc::clone(&inner), log.clone());
        assert_eq!(text(&store(), &commit).await.unwrap(), "one");
        inner.put(&commit, "two".into()).await.unwrap();
        assert_eq!(text(&store(), &commit).await.unwrap(), "one", "read once");
        let other = CachedLog::new(Arc::clone(&inner), Path::from("lake/_delta_log"));
        assert_eq!(text(&other, &commit).await.unwrap(), "two", "another log");
        assert_eq!(list(&store(), &log).await, 1);
        assert_eq!(text(&store(), &commit).await.unwrap(), "two");
        let ranges = store().get_ranges(&commit, &[0..1, 2..3]).await.unwrap();
        assert_eq!(ranges, ["t", "o"].map(Bytes::from));
        inner.delete(&commit).await.unwrap();
        assert_eq!(list(&store(), &log).await, 0);
        assert!(text(&store(), &commit).await.is_err());
        // What is no commit is never kept.
        let hint = log.clone().join("_last_checkpoint");
        for contents in ["five", "ten"] {
            inner.put(&hint, contents.into()).await.unwrap();
            assert_eq!(text(&store(), &hint).await.unwrap(), contents);
        }
    }

    #[tokio::test]
    async fn a_listing_that_begins_later_says_nothing_of_what_is_before() {
        let inner: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let log = Path::from("_delta_log");
        let commits: Vec<Path> = (0..3).map(|n| log.clone().join(format!("{n:020}.json"))).collect();
        let store = CachedLog::new(Arc::clone(&inner), log.clone());
        for commit in &commits {
            inner.put(commit, "then".into()).await.unwrap();
            text(&store, commit).await.unwrap();
            inner.put(commit, "later".into()).await.unwrap();
        }
        let after: Vec<_> = store.list_with_offset(Some(&log), &commits[1]).try_collect().await.unwrap();
        assert_eq!(after.len(), 1);
        assert_eq!(text(&store, &commits[0]).await.unwrap(), "then");
        assert_eq!(text(&store, &commits[2]).await.unwrap(), "later");
    }
}
