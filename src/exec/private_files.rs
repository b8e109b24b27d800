//! Files of private views: on a local disk they are the owner's alone (mode 0600), from their first byte on.
//!
//! Files get the mode of the process's umask, which mostly lets everybody read them. So a private file is written in a directory that nobody
//! else can enter, gets its mode there, and only then its name. Other systems have no modes.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use datafusion::common::Result;
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter,
};

use crate::release::PEOPLE;

/// Returns the path of a place on a local disk; `None` elsewhere, and where files have no modes.
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

pub(super) async fn remove_directory(directory: PathBuf) {
    let _ = blocking(move || std::fs::remove_dir(directory)).await;
}

/// Keeps a file to its owner.
/// Fails when it is not the owner who asks.
pub(super) async fn keep_to_owner(file: PathBuf) -> Result<()> {
    blocking(move || only_for_owner(&file)).await
}

/// Writes a release and its number of people into the footer of a Parquet file.
/// Fails when the file cannot be read or written.
pub(super) async fn note_people(file: PathBuf, release: String, people: u64) -> Result<()> {
    blocking(move || note(&file, &format!("{release} {people}"))).await
}

/// Writes the footer anew: nothing else in the file depends on where that ends.
fn note(file: &Path, said: &str) -> io::Result<()> {
    const END: u64 = 8;
    let mut file = File::options().read(true).write(true).open(file)?;
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).map_err(io::Error::other)?;
    let mut end = [0; END as usize];
    file.seek(SeekFrom::End(-(END as i64)))?;
    file.read_exact(&mut end)?;
    let [a, b, c, d, ..] = end;
    let written = u64::from(u32::from_le_bytes([a, b, c, d])) + END;
    let of_file = metadata.file_metadata();
    let mut says = of_file.key_value_metadata().cloned().unwrap_or_default();
    says.retain(|said| said.key != PEOPLE);
    says.push(KeyValue::new(PEOPLE.to_owned(), said.to_owned()));
    let of_file = FileMetaData::new(
        of_file.version(),
        of_file.num_rows(),
        of_file.created_by().map(str::to_owned),
        Some(says),
        of_file.schema_descr_ptr(),
        of_file.column_orders().cloned(),
    );
    let metadata = ParquetMetaData::new(of_file, metadata.row_groups().to_vec());
    let begin = file.metadata()?.len().saturating_sub(written);
    file.set_len(begin)?;
    file.seek(SeekFrom::Start(begin))?;
    let mut footer = Vec::new();
    ParquetMetaDataWriter::new(&mut footer, &metadata).finish().map_err(io::Error::other)?;
    file.write_all(&footer)
}

/// Moves the files of a directory into another one, to the same places. It keeps them to their owner. Removes the directory.
/// Fails when a file cannot be moved. Those that were moved stay.
pub(super) async fn move_files(from: PathBuf, to: PathBuf) -> Result<()> {
    blocking(move || move_all(&from, &to)).await
}

pub(super) async fn remove_files(directory: PathBuf) {
    let _ = blocking(move || std::fs::remove_dir_all(directory)).await;
}

fn move_all(from: &Path, to: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            std::fs::create_dir_all(&place)?;
            move_all(&entry.path(), &place)?;
        } else {
            only_for_owner(&entry.path())?;
            std::fs::rename(entry.path(), place)?;
        }
    }
    std::fs::remove_dir(from)
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
