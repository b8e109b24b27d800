//! Places of a publication's two tables.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::object_store::path::Path as StorePath;
use datafusion::object_store::prefix::PrefixStore;
use datafusion::object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use deltalake_core::logstore::{LogStoreRef, StorageConfig, default_logstore};
use futures::StreamExt;
use url::Url;

use super::failure::while_doing;
use super::local_store::LocalStore;
use super::log_cache::CachedLog;
use super::paths::{LOG, claim};
use crate::error::refusal;

/// Permission to read what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Readers whom the process's umask allows.
    Public,
    /// The owner.
    Private,
}

/// A directory: on a local disk, or in an object store that the session knows.
#[derive(Debug, Clone)]
pub(super) struct Place {
    url: Url,
    root: Arc<dyn ObjectStore>,
    store: Arc<dyn ObjectStore>,
    local: Option<LocalStore>,
    prefix: StorePath,
}

impl Place {
    /// Returns the directory at a URL that ends with a slash.
    pub(super) fn open(url: &Url, access: Access, runtime: &RuntimeEnv) -> Result<Self> {
        let prefix = store_path(url)?;
        let local = match url.scheme() {
            "file" => {
                let path = url.to_file_path();
                let path = path.map_err(|()| refusal!("publication", "{url} is not a location"))?;
                Some(LocalStore::new(path, access == Access::Private))
            }
            _ => None,
        };
        let root: Arc<dyn ObjectStore> = match &local {
            Some(local) => Arc::new(local.clone()),
            None => {
                let store = runtime.object_store_registry.get_store(url).map_err(|_| unknown_store(url))?;
                Arc::new(CachedLog::new(store, prefix.clone().join(LOG)))
            }
        };
        let store = Arc::new(PrefixStore::new(Arc::clone(&root), prefix.clone()));
        Ok(Self { url: url.clone(), root, store, local, prefix })
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    pub(super) fn is_local(&self) -> bool {
        self.local.is_some()
    }

    pub(super) fn unreadable(&self, error: impl Into<DataFusionError>) -> DataFusionError {
        while_doing(format!("{} cannot be read", self.url), error)
    }

    pub(super) fn unwritable(&self, error: impl Into<DataFusionError>) -> DataFusionError {
        while_doing(format!("{} cannot be written to", self.url), error)
    }

    /// Creates a file here, and asks to create it again, which must fail: of two who create one file, one must get through.
    /// Fails when nothing can be written here, or what exists is replaced.
    pub(super) async fn probe(&self, name: &StorePath) -> Result<()> {
        let put = || {
            let once = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            self.store.put_opts(name, "probe".into(), once)
        };
        let (first, second) = match put().await {
            Ok(_) => (Ok(()), put().await.map(|_| ())),
            // By a name that nobody else has: the store has heard one request twice.
            Err(error @ Error::AlreadyExists { .. }) => (Ok(()), Err(error)),
            Err(error) => (Err(error), Ok(())),
        };
        // A probe that stays is removed with what other attempts leave behind.
        let _ = self.store.delete(name).await;
        if let Err(error) = first {
            let doing = format!("nothing can be written to {}; nothing was published", self.url);
            return Err(while_doing(doing, error));
        }
        match second {
            Err(Error::AlreadyExists { .. }) => Ok(()),
            Err(error) => Err(while_doing(
                format!(
                    "whether {} can create a file only if there is none is not known; nothing was published",
                    self.url
                ),
                error,
            )),
            Ok(()) => Err(refusal!(
                "publication",
                "the store of {} replaces a file that exists although it was asked to create it, so of two INSERTs at \
                 once both would take one number; nothing was published. It must be able to create a file only if there is none \
                 (in S3, If-None-Match); choose another store, or another version of it",
                self.url
            )),
        }
    }

    /// Writes and removes files of a release's sizes in its place on local disks. A release that is decided and then
    /// finds no room, or a directory that is another account's, would be in the way of all later ones.
    /// Fails when `bytes` do not fit, or the directory or its log cannot be written to.
    pub(super) async fn check_room(&self, bytes: u64) -> Result<()> {
        let Some(local) = &self.local else { return Ok(()) };
        local.check_room(&[LOG], bytes).await.map_err(|error| {
            let doing = format!("a release of {bytes} bytes cannot be written to {}; nothing was published", self.url);
            while_doing(doing, error)
        })
    }

    /// Refuses a place inside of a table, whose readers read all of its directory: a ledger must not lie there, nor may
    /// a public table lie where only the owner can read.
    /// Fails when a directory above is a Delta table.
    pub(super) async fn refuse_inside_a_table(&self) -> Result<()> {
        let mut above = self.prefix.clone();
        while let Some(parent) = parent(&above) {
            let log = parent.clone().join(LOG);
            // Whoever may not look there cannot know.
            if let Some(Ok(_)) = self.root.list(Some(&log)).next().await {
                return Err(refusal!(
                    "publication",
                    "{} is inside of another Delta table; choose a location outside",
                    self.url
                ));
            }
            above = parent;
        }
        Ok(())
    }

    /// Waits until a file that is there is sure to stay there: whoever wrote it may have died before that.
    pub(super) async fn settle(&self, name: &StorePath) -> Result<()> {
        let Some(local) = &self.local else { return Ok(()) };
        let path: StorePath = self.prefix.parts().chain(name.parts()).collect();
        local.settle(&path).await.map_err(|error| self.unwritable(error))
    }

    /// Returns the number, if somebody has claimed it here.
    pub(super) async fn is_claimed(&self, number: u64) -> Result<Option<u64>> {
        match self.store.head(&claim(number)).await {
            Ok(_) => Ok(Some(number)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.unreadable(error)),
        }
    }

    /// Removes a directory in it, if it is empty and there are directories.
    pub(super) async fn remove_empty(&self, name: &StorePath) {
        if let Some(local) = &self.local {
            local.remove_empty(&self.prefix.parts().chain(name.parts()).collect()).await;
        }
    }

    pub(super) fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// Returns Delta Lake's view of it: a log that is committed to by creating the next numbered file, which one writer can.
    pub(super) fn log_store(&self) -> LogStoreRef {
        default_logstore(Arc::clone(&self.store), Arc::clone(&self.root), &self.url, &StorageConfig::default())
    }
}

/// Returns the error of an unregistered store, as a session's own is no help.
fn unknown_store(url: &Url) -> DataFusionError {
    match url.scheme() {
        "s3" | "s3a" | "gs" | "gcs" | "az" | "abfs" | "abfss" | "http" | "https" => refusal!(
            "publication",
            "this session has no object store for {url}; the shell registers one for every location that a statement \
             names, a program does it with SessionContext::register_object_store"
        ),
        scheme => refusal!(
            "publication",
            "{url} is in no object store that this session has ({scheme}://); locations are paths of local disks, \
             s3://, gs://, az:// or abfss://, and what a program has registered"
        ),
    }
}

/// Returns the URL of a directory, from a path or a URL. Links in local paths are followed, so that one directory has one URL.
/// Fails when it is neither, or leads above a directory that does not exist.
pub(crate) fn locate(text: &str) -> Result<Url> {
    if text.is_empty() {
        return Err(refusal!("publication", "a location is missing; it is a directory such as 'lake/hospital/'"));
    }
    let mut url = match Url::parse(text) {
        Ok(url) if url.scheme() != "file" && text.contains("://") => url,
        Ok(url) if url.scheme() == "file" => match url.to_file_path() {
            Ok(path) => local(&path)?,
            Err(()) => return Err(refusal!("publication", "{text} is not a location")),
        },
        _ => local(Path::new(text))?,
    };
    if matches!(url.scheme(), "http" | "https") {
        return Err(refusal!(
            "publication",
            "a publication cannot be at {}://, where nothing can be listed and nobody can create a file only if there is \
             none; choose a location in an object store. Single files can be read from there: SELECT .. FROM '{}://..'",
            url.scheme(),
            url.scheme()
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refusal!("publication", "{text} is not a location: it has a query or a fragment"));
    }
    let path = format!("{}/", url.path().trim_end_matches('/'));
    url.set_path(&path);
    refuse_ambiguous(store_path(&url)?.as_ref())?;
    Ok(url)
}

fn parent(path: &StorePath) -> Option<StorePath> {
    let mut parts: Vec<_> = path.parts().collect();
    parts.pop()?;
    Some(parts.into_iter().collect())
}

/// Returns the directory in its store, without any encoding.
fn store_path(url: &Url) -> Result<StorePath> {
    StorePath::from_url_path(url.path()).map_err(|error| refusal!("publication", "{url} is not a location: {error}"))
}

/// Refuses escapes in paths. Delta Lake decodes them once too often and would look elsewhere.
fn refuse_ambiguous(path: &str) -> Result<()> {
    let encoded = |place: usize| {
        let digits = path.as_bytes().get(place + 1..place + 3);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if path.contains('\\') || path.match_indices('%').any(|(place, _)| encoded(place)) {
        return Err(refusal!(
            "publication",
            "a location cannot have a backslash, or a percent sign before two hexadecimal digits, in its path"
        ));
    }
    Ok(())
}

fn local(path: &Path) -> Result<Url> {
    let absolute = std::path::absolute(path)?;
    let mut known = absolute.as_path();
    let mut rest = PathBuf::new();
    let real = loop {
        match (known.canonicalize(), known.parent(), known.components().next_back()) {
            (Ok(real), ..) => break real,
            (Err(_), Some(parent), Some(Component::Normal(name))) => {
                rest = Path::new(name).join(rest);
                known = parent;
            }
            _ => return Err(refusal!("publication", "{} is not a location", path.display())),
        }
    };
    let Ok(url) = Url::from_directory_path(real.join(rest)) else {
        return Err(refusal!("publication", "{} is not a location", path.display()));
    };
    Ok(url)
}

/// Returns the default place of the ledger: beside the public table.
/// Fails when the public table is at the root of its store.
pub(crate) fn private_beside(public: &Url) -> Result<Url> {
    let path = public.path().trim_end_matches('/');
    if path.is_empty() {
        return Err(refusal!(
            "publication",
            "there is no place beside {public} for the private ledger; say where it is with the option private"
        ));
    }
    let mut url = public.clone();
    url.set_path(&format!("{path}.private/"));
    Ok(url)
}

/// Checks that neither table is in the other, where its readers would find it.
/// Fails when one location is inside of the other.
pub(crate) fn check_apart(public: &Url, private: &Url) -> Result<()> {
    let (inner, outer) = (store_path(private)?, store_path(public)?);
    if is_one_store(public, private) && (inner.prefix_matches(&outer) || outer.prefix_matches(&inner)) {
        return Err(refusal!(
            "publication",
            "the private ledger must not be where the public can read: {private} and the publication's LOCATION {public} \
             must not contain each other"
        ));
    }
    Ok(())
}

/// Returns true if two URLs can be of one store.
fn is_one_store(one: &Url, other: &Url) -> bool {
    // Several names of one protocol.
    let scheme = |url: &Url| match url.scheme() {
        "s3a" => "s3".to_owned(),
        "gcs" => "gs".to_owned(),
        "abfs" | "abfss" | "azure" | "adl" => "az".to_owned(),
        scheme => scheme.to_owned(),
    };
    // `abfss://container@account.host/`, or short `az://container/`.
    let container = |url: &Url| match url.username() {
        "" => url.host_str().unwrap_or_default().to_owned(),
        container => container.to_owned(),
    };
    if scheme(one) != scheme(other) {
        return false;
    }
    // A session keeps stores by host and port, whatever stands before the host.
    let host = |url: &Url| (url.host_str().map(str::to_owned), url.port());
    host(one) == host(other) || (scheme(one) == "az" && container(one) == container(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_directories() {
        assert_eq!(locate("s3://bucket/lake/hospital").unwrap().as_str(), "s3://bucket/lake/hospital/");
        let here = tempfile::tempdir().unwrap();
        let real = here.path().canonicalize().unwrap();
        let url = locate(&format!("{}/a/./b/", here.path().display())).unwrap();
        assert_eq!(url.to_file_path().unwrap(), real.join("a/b"));
        assert_eq!(locate(url.as_str()).unwrap(), url);
        assert!(locate("s3://bucket/a?x=1").is_err());
        for ambiguous in ["a%20b", "s3://bucket/a%2520b", "a\\b", "s3://bucket/a%5Cb"] {
            assert!(locate(ambiguous).unwrap_err().to_string().contains("percent sign"), "{ambiguous}");
        }
        for fine in ["a b", "100%", "s3://bucket/a%20b", "é+&=#?"] {
            assert!(locate(fine).is_ok(), "{fine}");
        }
        assert!(locate(&format!("{}/missing/../b", here.path().display())).is_err());
    }

    #[test]
    fn the_ledger_is_beside_and_never_inside() {
        let public = Url::parse("s3://bucket/lake/hospital/").unwrap();
        let beside = private_beside(&public).unwrap();
        assert_eq!(beside.as_str(), "s3://bucket/lake/hospital.private/");
        assert!(check_apart(&public, &beside).is_ok());
        for inside in
            ["s3://bucket/lake/hospital/", "s3://bucket/lake/hospital/private/", "s3://bucket/lake/", "s3://bucket/"]
        {
            assert!(check_apart(&public, &Url::parse(inside).unwrap()).is_err(), "{inside}");
        }
        let azure = |text: &str| Url::parse(text).unwrap();
        let ours = azure("abfss://lake@ours.dfs.core.windows.net/hospital/");
        for inside in [
            "az://lake/hospital/",
            "abfs://lake@ours.dfs.core.windows.net/",
            "abfss://other@ours.dfs.core.windows.net/hospital/",
        ] {
            assert!(check_apart(&ours, &azure(inside)).is_err(), "{inside}");
        }
        assert!(check_apart(&ours, &azure("az://ledgers/hospital/")).is_ok());
        assert!(check_apart(&public, &azure("s3a://bucket/lake/")).is_err());
        for apart in ["s3://bucket/lake/hospital2/", "s3://other/lake/hospital/"] {
            assert!(check_apart(&public, &Url::parse(apart).unwrap()).is_ok(), "{apart}");
        }
        assert!(private_beside(&Url::parse("s3://bucket/").unwrap()).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed() {
        let here = tempfile::tempdir().unwrap();
        std::fs::create_dir(here.path().join("public")).unwrap();
        std::os::unix::fs::symlink(here.path().join("public"), here.path().join("elsewhere")).unwrap();
        let public = locate(&format!("{}/public", here.path().display())).unwrap();
        let private = locate(&format!("{}/elsewhere/ledger", here.path().display())).unwrap();
        assert!(check_apart(&public, &private).is_err());
    }
}
