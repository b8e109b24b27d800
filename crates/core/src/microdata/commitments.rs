//! Commitments: salted hashes of values and of partners, by which the publisher's memory of worlds notices a change without holding
//! the values.
//!
//! Everybody has a salt of their own, so equal values do not look equal. A commitment is no secret to who has the memory and can guess the
//! value.

use std::hash::Hasher;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, Int64Array, ListArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use siphasher::sip::SipHasher13;

use super::{Attribute, HashKey};
use crate::error::{Error, Result};

/// Names are no secret.
const NAMES: HashKey = [0x7365_616c_6564_2063, 0x6f6c_756d_6e73_2e2e];
/// Name hashes of sensitive columns: they show if one becomes another kind of column later.
const SENSITIVE_NAMES: HashKey = [0x7365_6e73_6974_6976, 0x6520_636f_6c75_6d6e];
/// Names of quasi-identifiers, which are not sealed.
const QUASI_NAMES: HashKey = [0x6b6e_6f77_6e20_746f, 0x2072_6561_6465_7273];
/// Name hash of the seal of a person's partners in a ring.
pub const PARTNERS_NAME: i64 = 0x7269_6e67_7061_7274;

/// Commitments to the values of one column.
#[derive(Debug)]
pub struct Commitments {
    /// Hash of the column's name.
    pub name: i64,
    /// Hash of each value, by code.
    values: Vec<u64>,
}

impl Commitments {
    /// Returns the commitments of an attribute, which is the sensitive one or not.
    ///
    /// # Errors
    /// When Arrow cannot show values of its type as text.
    pub fn of(attribute: &Attribute, sensitive: bool) -> Result<Self> {
        let values = attribute.domain.values();
        let options = FormatOptions::new();
        let texts = ArrayFormatter::try_new(values.as_ref(), &options)?;
        let hash = |code: usize| -> Result<u64> {
            let mut hasher = SipHasher13::new_with_keys(NAMES[0], NAMES[1]);
            hasher.write(attribute.field.name().as_bytes());
            hasher.write_u8(u8::from(values.is_null(code)));
            hasher.write(texts.value(code).try_to_string()?.as_bytes());
            Ok(hasher.finish())
        };
        let name = name_of(attribute.field.name(), sensitive);
        Ok(Self { name, values: (0..values.len()).map(hash).collect::<Result<_>>()? })
    }

    /// Commits to a value under a person's salt.
    pub fn to(&self, salt: i64, code: u32) -> i64 {
        let mut hasher = SipHasher13::new_with_keys(salt as u64, self.name as u64);
        hasher.write_u64(self.values[code as usize]);
        hasher.finish() as i64
    }
}

/// Returns a number that follows from a key and two numbers, the same for ever.
pub fn keyed_number(key: HashKey, numbers: [u64; 2]) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(key[0], key[1]);
    numbers.into_iter().for_each(|number| hasher.write_u64(number));
    hasher.finish()
}

/// Returns the hash of a column's name.
pub fn name_of(name: &str, sensitive: bool) -> i64 {
    keyed(if sensitive { SENSITIVE_NAMES } else { NAMES }, name)
}

/// Returns the hash of a quasi-identifier's name.
pub fn quasi_name_of(name: &str) -> i64 {
    keyed(QUASI_NAMES, name)
}

fn keyed(key: HashKey, name: &str) -> i64 {
    let mut hasher = SipHasher13::new_with_keys(key[0], key[1]);
    hasher.write(name.as_bytes());
    hasher.finish() as i64
}

/// Commits to a person's partners, so that an audit notices other ones.
///
/// # Errors
/// When Arrow cannot show identifiers as text.
pub fn partners_commitment(salt: i64, partners: &ArrayFormatter<'_>, range: Range<usize>) -> Result<i64> {
    let mut hasher = SipHasher13::new_with_keys(salt as u64, PARTNERS_NAME as u64);
    let mut text = String::new();
    for place in range {
        text.clear();
        partners.value(place).write(&mut text)?;
        hasher.write_u64(text.len() as u64);
        hasher.write(text.as_bytes());
    }
    Ok(hasher.finish() as i64)
}

/// Returns the salt and commitments of some people, for the memory: of each column, of which everybody has a code, and of the partners of those that have some;
/// with the names of the quasi-identifiers, so that these stay such.
///
/// # Errors
/// When Arrow cannot show identifiers as text; when somebody has no code of a column, which is a bug.
pub fn commitments(
    columns: &[Commitments],
    codes: &[Vec<u32>],
    quasi: &[Attribute],
    salts: &[i64],
    partners: &ListArray,
) -> Result<ListArray> {
    if columns.len() != codes.len() || codes.iter().any(|codes| codes.len() != salts.len()) {
        return Err(Error::internal("values that are not sealed"));
    }
    let quasi: Vec<i64> = quasi.iter().map(|attribute| quasi_name_of(attribute.field.name())).collect();
    let options = FormatOptions::new();
    let texts = ArrayFormatter::try_new(partners.values().as_ref(), &options)?;
    // A salt, and pairs.
    let most = 1 + 2 * (columns.len() + quasi.len() + 1);
    let (mut all, mut lengths) = (Vec::with_capacity(salts.len() * most), Vec::with_capacity(salts.len()));
    for (place, &salt) in salts.iter().enumerate() {
        let start = all.len();
        all.push(salt);
        for (column, codes) in columns.iter().zip(codes) {
            all.extend([column.name, column.to(salt, codes[place])]);
        }
        quasi.iter().for_each(|&name| all.extend([name, 0]));
        let range = partners.value_offsets()[place] as usize..partners.value_offsets()[place + 1] as usize;
        if !range.is_empty() {
            all.extend([PARTNERS_NAME, partners_commitment(salt, &texts, range)?]);
        }
        lengths.push(all.len() - start);
    }
    let item = Arc::new(Field::new_list_field(DataType::Int64, true));
    Ok(ListArray::try_new(item, OffsetBuffer::from_lengths(lengths), Arc::new(Int64Array::from(all)), None)?)
}
