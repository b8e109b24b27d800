//! Bytes of rows: batches and files of long texts have fewer of them, so that what is written at a time stays small.

use std::ops::Range;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::DataType;

use super::Published;
use crate::microdata::Attribute;
use crate::release::{Body, SIGNATURE};

/// Bytes of texts in a batch, about.
const BATCH: usize = 8 << 20;
/// Bytes of texts in a file, about: a file is in memory until it is written.
const FILE: usize = 128 << 20;
const ITEMS: usize = 1 << 19;

/// Mean bytes of the texts of a row, by where they are.
#[derive(Debug, Default)]
pub(super) struct RowBytes {
    /// Bytes in the wanted columns of the release.
    of_release: usize,
    /// Bytes in an entry of the ledger, at most.
    of_entry: usize,
}

impl Published {
    /// Returns how many rows a batch of the release should have: as many as asked for, but fewer where rows carry long lists or texts.
    pub fn batch_rows(&self, wanted: usize) -> usize {
        let lists = self.schema.fields().iter().any(|field| matches!(field.data_type(), DataType::List(_)));
        let groups = &self.release.groups;
        let items = match &self.release.body {
            _ if !lists => 0,
            Body::Worlds(worlds) => worlds.width,
            // Lists are as long as their group is large, at most; what counts is the group of a row drawn at random.
            _ => {
                let squares = (0..groups.len()).map(|group| groups.range(group).len().pow(2)).sum::<usize>();
                squares / groups.members.len().max(1)
            }
        };
        at_most(wanted.min(ITEMS / items.max(1)).max(1), BATCH, self.row_bytes().of_release)
    }

    /// Returns how many rows a file of the release should have.
    pub fn file_rows(&self, wanted: usize) -> usize {
        at_most(wanted, FILE, self.row_bytes().of_release)
    }

    /// Returns how many entries of the ledger should be made at a time.
    pub fn entry_rows(&self, wanted: usize) -> usize {
        at_most(wanted, BATCH, self.row_bytes().of_entry)
    }

    /// Returns how many entries a file of the ledger should have.
    pub fn entry_file_rows(&self, wanted: usize) -> usize {
        at_most(wanted, FILE, self.row_bytes().of_entry)
    }

    fn row_bytes(&self) -> &RowBytes {
        self.row_bytes.get_or_init(|| self.count_row_bytes())
    }

    fn count_row_bytes(&self) -> RowBytes {
        let microdata = &self.release.microdata;
        let mut bytes = RowBytes::default();
        let mut add = |name: &str, times: usize, mean: usize| {
            let wanted = self.schema.column_with_name(name).is_some();
            bytes.of_release += if wanted { times * mean } else { 0 };
            bytes.of_entry += mean;
        };
        let rows = 0..microdata.rows as u32;
        for (j, attribute) in microdata.quasi.iter().enumerate() {
            if let Some(lengths) = lengths(attribute) {
                // A method that needs codes no more has given them up: then values count alike.
                let mean = match microdata.quasi_codes.are_of(microdata.rows, microdata.quasi.len()) {
                    true => mean(rows.clone().map(|row| lengths[microdata.quasi_at(row, j) as usize])),
                    false => mean(lengths.into_iter()),
                };
                // Both ends of a range; of an entry, what somebody has and what was published.
                add(attribute.field.name(), 2, 2 * mean);
            }
        }
        for (j, attribute) in microdata.other.iter().enumerate() {
            if let Some(lengths) = lengths(attribute) {
                add(
                    attribute.field.name(),
                    1,
                    mean(rows.clone().map(|row| lengths[microdata.other_of(row)[j] as usize])),
                );
            }
        }
        if let Some(people) = &microdata.people {
            add("", 0, lengths_of(&people.identifiers).map_or(0, |lengths| mean(lengths.into_iter())));
        }
        if let Some((sensitive, lengths)) = microdata.sensitive.as_ref().and_then(|own| Some((own, lengths(own)?))) {
            let (own, of_groups) = self.sensitive_bytes(&lengths);
            bytes.of_entry += of_groups;
            for field in self.schema.fields() {
                let is_sensitive = field.name() == sensitive.field.name() || field.name() == SIGNATURE;
                bytes.of_release += match field.data_type() {
                    DataType::List(_) if is_sensitive => of_groups,
                    _ if is_sensitive || self.parts.iter().any(|part| part.name() == field.name()) => own,
                    _ => 0,
                };
            }
        }
        bytes
    }

    /// Returns the mean bytes of a member's sensitive value and of its group's values.
    fn sensitive_bytes(&self, lengths: &[u32]) -> (usize, usize) {
        let groups = &self.release.groups;
        let members = groups.members.len().max(1);
        if self.values.len() < groups.members.len() {
            // Given up, as above.
            let mean = mean(lengths.iter().copied());
            return (mean, mean);
        }
        let of_part =
            |part: Range<usize>| self.values.part(part).map(|code| lengths[code as usize] as usize).sum::<usize>();
        let mut all = (0, 0);
        for group in 0..groups.len() {
            let part = groups.range(group);
            let (size, bytes) = (part.len(), of_part(part));
            all.0 += bytes;
            all.1 += bytes * size;
        }
        (all.0 / members, all.1 / members)
    }
}

/// Returns the rows of so many bytes, in a place of some bytes: at least one of them.
fn at_most(wanted: usize, place: usize, bytes: usize) -> usize {
    wanted.min(place / bytes.max(1)).max(1)
}

fn mean(lengths: impl ExactSizeIterator<Item = u32>) -> usize {
    let count = lengths.len().max(1);
    lengths.map(|length| length as usize).sum::<usize>() / count
}

/// Returns the lengths of an attribute's values, by code, if some are long.
fn lengths(attribute: &Attribute) -> Option<Vec<u32>> {
    lengths_of(attribute.domain.values())
}

/// Returns the lengths of texts, if some are longer than a view has room for. Texts are held as views.
fn lengths_of(values: &ArrayRef) -> Option<Vec<u32>> {
    const INLINE: u32 = 12;
    let views = match values.data_type() {
        DataType::Utf8View => values.as_string_view().views(),
        DataType::BinaryView => values.as_binary_view().views(),
        _ => return None,
    };
    // The lowest bits of a view are its length; of NULL, nothing is said there.
    let length = |(place, view): (usize, &u128)| if values.is_null(place) { 0 } else { *view as u32 };
    let lengths: Vec<u32> = views.iter().enumerate().map(length).collect();
    lengths.iter().any(|length| *length > INLINE).then_some(lengths)
}
