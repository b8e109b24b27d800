//! Files of private views: on a local disk they are the owner's alone (mode 0600), from their first byte on.
//!
//! Files get the mode of the process's umask, which mostly lets everybody read them. So a private file is written in a directory that nobody
//! else can enter, gets its mode there, and only then its name. Other systems have no modes.

use std::io;
use std::path::{Path, PathBuf};

use datafusion::arrow::datatypes::Schema;
use datafusion::common::Result;
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::listing::ListingTableUrl;

use crate::microdata::Role;
use crate::release::{COMMITMENTS, COUNTERFEIT_MARK, LABEL, PARTNERS, SIGNATURE};

/// Returns true if a column says that it is of a private view: an identifier, or what only the publisher may know.
pub(super) fn is_private(schema: &Schema) -> bool {
    let private = [Role::Id.name(), COUNTERFEIT_MARK, SIGNATURE, LABEL, PARTNERS, COMMITMENTS];
    let role = |metadata: &std::collections::HashMap<String, String>| {
        metadata.get(Role::KEY).is_some_and(|role| private.contains(&role.as_str()))
    };
    schema.fields().iter().any(|field| role(field.metadata()))
}

/// The path of a place on a local disk; `None` elsewhere, and where files have no modes.
pub(super) fn local_path(location: &ListingTableUrl) -> Option<PathBuf> {
    match cfg!(unix) && location.scheme() == "file" {
        true => location.get_url().to_file_path().ok(),
        false => None,
    }
}

/// Makes a directory that nobody else can enter, if there is none.
pub(super) async fn make_closed_directory(directory: PathBuf) -> Result<()> {
    blocking(move || {
        if let Some(above) = directory.parent() {
            std::fs::create_dir_all(above)?;
        }
        match closed_directory(&directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    })
    .await
}

/// Removes an empty directory, if it is there.
pub(super) async fn remove_directory(directory: PathBuf) {
    let _ = blocking(move || std::fs::remove_dir(directory)).await;
}

/// Keeps a file to its owner.
///
/// # Errors
/// When it is not the owner who asks.
pub(super) async fn keep_to_owner(file: PathBuf) -> Result<()> {
    blocking(move || only_for_owner(&file)).await
}

async fn blocking(work: impl FnOnce() -> io::Result<()> + Send + 'static) -> Result<()> {
    Ok(SpawnedTask::spawn_blocking(work).join().await.map_err(io::Error::other)??)
}

#[cfg(unix)]
fn closed_directory(directory: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

#[cfg(not(unix))]
fn closed_directory(directory: &Path) -> io::Result<()> {
    std::fs::create_dir(directory)
}

#[cfg(unix)]
fn only_for_owner(file: &Path) -> io::Result<()> {
    std::fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o600))
}

#[cfg(not(unix))]
fn only_for_owner(_file: &Path) -> io::Result<()> {
    Ok(())
}
