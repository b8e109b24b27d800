//! An object store on a local disk that keeps its files. It keeps them to the owner where that is asked for.
//!
//! [`LocalFileSystem`] replaces files atomically but never waits for the disk, and files get the mode of the process's umask.
//! Here every write is on the disk before it has a name, and its name before the write returns; in private places files have
//! mode 0600 and directories 0700.

use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::runtime::SpawnedTask;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, RenameTargetMode, Result,
    UploadPart,
};
use futures::stream::BoxStream;

use super::paths::unnamed;

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct LocalStore {
    inner: Arc<LocalFileSystem>,
    root: PathBuf,
    private: bool,
}

impl LocalStore {
    /// Returns the whole file system, of which `root` is written to. If that is `private`, it and what is in it are the owner's.
    pub(super) fn new(root: PathBuf, private: bool) -> Self {
        Self { inner: Arc::new(LocalFileSystem::new()), root, private }
    }

    /// Makes the directories that a file needs.
    async fn make_room(&self, location: &Path) -> Result<()> {
        let file = self.inner.path_to_filesystem(location)?;
        let root = self.private.then(|| self.root.clone());
        blocking(move || match file.parent() {
            Some(directory) => make_directory(directory, root.as_deref()),
            None => Ok(()),
        })
        .await
    }

    /// Writes a file that is on the disk when this returns.
    async fn write(&self, location: &Path, payload: PutPayload) -> Result<()> {
        let path = self.inner.path_to_filesystem(location)?;
        let private = self.private;
        blocking(move || {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            if private {
                files_for_owner(&mut options);
            }
            let mut file = options.open(&path)?;
            payload.iter().try_for_each(|part| file.write_all(part))?;
            file.sync_all()
        })
        .await
    }

    /// Waits until the name of a file that is on the disk is there, too. Somebody who clears up may have removed both.
    async fn settle_name(&self, location: &Path) -> Result<()> {
        let path = self.inner.path_to_filesystem(location)?;
        let synced = blocking(move || path.parent().map_or(Ok(()), sync_directory)).await;
        match synced {
            Err(Error::NotFound { .. }) => Ok(()),
            synced => synced,
        }
    }

    pub(super) async fn remove_empty(&self, location: &Path) {
        if let Ok(path) = self.inner.path_to_filesystem(location) {
            // If it is not empty, it stays.
            let _ = blocking(move || std::fs::remove_dir(path)).await;
        }
    }

    /// Writes and removes files of so many bytes, in the root and these directories. Directories that are missing are left out.
    pub(super) async fn check_room(&self, directories: &[&str], bytes: u64) -> Result<()> {
        let root = self.root.clone();
        let mut files = vec![(root.join(unnamed().map_err(failed)?), bytes)];
        for directory in directories.iter().map(|name| root.join(name)).filter(|directory| directory.is_dir()) {
            files.push((directory.join(unnamed().map_err(failed)?), OF_A_COMMIT));
        }
        blocking(move || {
            let written = make_directory(&root, None)
                .and_then(|()| files.iter().try_for_each(|(file, bytes)| fill(file, *bytes)));
            for (file, _) in &files {
                // Of those that were not written, there is none.
                let _ = std::fs::remove_file(file);
            }
            written
        })
        .await
    }

    /// Gives a file of others its mode, and waits until the disk has it.
    pub(super) async fn settle(&self, location: &Path) -> Result<()> {
        let path = self.inner.path_to_filesystem(location)?;
        let private = self.private;
        blocking(move || {
            let file = File::open(&path)?;
            if private {
                keep_to_owner(&file)?;
            }
            file.sync_all()?;
            path.parent().map_or(Ok(()), sync_directory)
        })
        .await
    }
}

impl fmt::Display for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalStore({})", if self.private { "private" } else { "public" })
    }
}

#[async_trait]
impl ObjectStore for LocalStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let target = match &opts.mode {
            PutMode::Overwrite => RenameTargetMode::Overwrite,
            PutMode::Create => RenameTargetMode::Create,
            PutMode::Update(_) => return self.inner.put_opts(location, payload, opts).await,
        };
        // Hidden from whoever lists the directory as a table.
        let name = unnamed().map_err(failed)?;
        let mut parts: Vec<_> = location.parts().collect();
        parts.pop();
        let unnamed: Path = parts.into_iter().collect::<Path>().join(name);
        for last in [false, false, true] {
            self.make_room(location).await?;
            let named = match self.write(&unnamed, payload.clone()).await {
                Ok(()) => {
                    let options = RenameOptions::new().with_target_mode(target);
                    self.inner.rename_opts(&unnamed, location, options).await
                }
                Err(error) => Err(error),
            };
            match named {
                Ok(()) => break,
                // Somebody who clears up has removed the directory, or the file before it had its name.
                Err(Error::NotFound { .. }) if !last => {}
                Err(error) => {
                    let _ = self.inner.delete(&unnamed).await;
                    return Err(error);
                }
            }
        }
        self.settle_name(location).await?;
        Ok(PutResult { e_tag: None, version: None })
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.make_room(location).await?;
        let upload = self.inner.put_multipart_opts(location, opts).await?;
        Ok(Box::new(Upload { upload, store: self.clone(), location: location.clone() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<bytes::Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.make_room(to).await?;
        self.inner.copy_opts(from, to, options).await?;
        self.settle(to).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.make_room(to).await?;
        self.inner.rename_opts(from, to, options).await?;
        self.settle(to).await
    }
}

/// An upload in parts; only the whole is settled.
#[derive(Debug)]
struct Upload {
    upload: Box<dyn MultipartUpload>,
    store: LocalStore,
    location: Path,
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.upload.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let result = self.upload.complete().await?;
        self.store.settle(&self.location).await?;
        Ok(result)
    }

    async fn abort(&mut self) -> Result<()> {
        self.upload.abort().await
    }
}

/// Bytes that a commit has at most, commonly.
const OF_A_COMMIT: u64 = 1 << 16;
/// Bytes that are written at a time.
const CHUNK: usize = 1 << 20;
/// Files up to this size are waited for: some file systems find out late that they are full.
const SYNCED: u64 = 1 << 26;

/// Makes a file of zeros.
fn fill(file: &FilePath, bytes: u64) -> io::Result<()> {
    let mut made = OpenOptions::new().write(true).create_new(true).open(file)?;
    let zeros = vec![0; CHUNK.min(usize::try_from(bytes).unwrap_or(CHUNK))];
    let mut left = bytes;
    while left > 0 {
        let next = zeros.len().min(usize::try_from(left).unwrap_or(CHUNK));
        made.write_all(&zeros[..next])?;
        left -= next as u64;
    }
    if bytes <= SYNCED { made.sync_all() } else { Ok(()) }
}

async fn blocking(work: impl FnOnce() -> io::Result<()> + Send + 'static) -> Result<()> {
    match SpawnedTask::spawn_blocking(work).join().await {
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::NotFound { path: String::new(), source: Box::new(error) })
        }
        Ok(result) => result.map_err(failed),
        Err(error) => Err(failed(error)),
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Generic { store: "LocalStore", source: Box::new(error) }
}

/// Makes a directory and those above it, and waits until the disk has their names. From `private` on they are the owner's.
fn make_directory(directory: &FilePath, private: Option<&FilePath>) -> io::Result<()> {
    let missing: Vec<PathBuf> =
        directory.ancestors().take_while(|path| !path.is_dir()).map(FilePath::to_path_buf).collect();
    for path in missing.iter().rev() {
        let mut builder = DirBuilder::new();
        if private.is_some_and(|root| path.starts_with(root)) {
            directories_for_owner(&mut builder);
        }
        match builder.create(path) {
            // Somebody else was faster.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => path.parent().map_or(Ok(()), sync_directory)?,
        }
    }
    private.map_or(Ok(()), close_to_others)
}

#[cfg(unix)]
fn directories_for_owner(builder: &mut DirBuilder) {
    std::os::unix::fs::DirBuilderExt::mode(builder, 0o700);
}

#[cfg(unix)]
fn files_for_owner(options: &mut OpenOptions) {
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
}

#[cfg(unix)]
fn keep_to_owner(file: &File) -> io::Result<()> {
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))
}

/// Closes a directory that somebody has made before to all but the owner.
#[cfg(unix)]
fn close_to_others(directory: &FilePath) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    if std::fs::metadata(directory)?.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    std::fs::set_permissions(directory, PermissionsExt::from_mode(0o700))
}

#[cfg(unix)]
fn sync_directory(directory: &FilePath) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

// Other systems have no modes, and no way to wait for a directory.
#[cfg(not(unix))]
fn directories_for_owner(_builder: &mut DirBuilder) {}

#[cfg(not(unix))]
fn files_for_owner(_options: &mut OpenOptions) {}

#[cfg(not(unix))]
fn keep_to_owner(_file: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn close_to_others(_directory: &FilePath) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn sync_directory(_directory: &FilePath) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(directory: &FilePath, name: &str) -> Path {
        Path::from_absolute_path(directory.join(name)).unwrap()
    }

    #[cfg(unix)]
    fn mode(path: &FilePath) -> u32 {
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).unwrap().permissions()) & 0o777
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn private_files_and_directories_are_the_owners() {
        let here = tempfile::tempdir().unwrap();
        let root = here.path().join("above/ledger");
        let store = LocalStore::new(root.clone(), true);
        store.put(&within(&root, "b/file"), "text".into()).await.unwrap();
        let mut upload = store.put_multipart(&within(&root, "c/large")).await.unwrap();
        upload.put_part("text".into()).await.unwrap();
        upload.complete().await.unwrap();
        store.copy(&within(&root, "b/file"), &within(&root, "d/copy")).await.unwrap();
        for directory in ["", "b", "c", "d"] {
            assert_eq!(mode(&root.join(directory)), 0o700, "{directory}");
        }
        for file in ["b/file", "c/large", "d/copy"] {
            assert_eq!(mode(&root.join(file)), 0o600, "{file}");
        }
        // What is above is not ours to close.
        let other = here.path().join("other");
        std::fs::create_dir(&other).unwrap();
        assert_eq!(mode(&here.path().join("above")), mode(&other));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_directory_that_was_open_is_closed() {
        let here = tempfile::tempdir().unwrap();
        let root = here.path().join("ledger");
        std::fs::create_dir(&root).unwrap();
        let store = LocalStore::new(root.clone(), true);
        store.put(&within(&root, "file"), "text".into()).await.unwrap();
        assert_eq!(mode(&root), 0o700);
    }

    #[tokio::test]
    async fn only_empty_directories_are_removed() {
        let here = tempfile::tempdir().unwrap();
        let store = LocalStore::new(here.path().to_owned(), true);
        store.put(&within(here.path(), "a/b/file"), "text".into()).await.unwrap();
        store.remove_empty(&within(here.path(), "a/b")).await;
        assert!(here.path().join("a/b/file").exists());
        store.delete(&within(here.path(), "a/b/file")).await.unwrap();
        assert!(here.path().join("a/b").exists());
        store.remove_empty(&within(here.path(), "a/b")).await;
        assert!(here.path().join("a").exists() && !here.path().join("a/b").exists());
    }

    #[tokio::test]
    async fn creating_what_exists_fails_and_leaves_nothing_behind() {
        let here = tempfile::tempdir().unwrap();
        let store = LocalStore::new(here.path().to_owned(), false);
        let file = within(here.path(), "file");
        let create = || PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        store.put_opts(&file, "first".into(), create()).await.unwrap();
        let second = store.put_opts(&file, "second".into(), create()).await;
        assert!(matches!(second, Err(Error::AlreadyExists { .. })), "{second:?}");
        assert_eq!(store.get(&file).await.unwrap().bytes().await.unwrap().as_ref(), b"first");
        assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 1);
        store.put(&file, "third".into()).await.unwrap();
        assert_eq!(std::fs::read(here.path().join("file")).unwrap(), b"third");
    }
}
