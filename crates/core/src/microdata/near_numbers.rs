//! Codes of whole numbers that lie close together, by the numbers themselves: ages, years, codes of regions. To hash each number would take most of the
//! time in which a table is read.

use datafusion::arrow::array::{Array, Int64Array};
use datafusion::arrow::datatypes::DataType;

/// Numbers whose codes are kept: from the least one on, so many.
const SPAN: usize = 1 << 12;
/// Mark of a number without a code.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// Codes by number.
#[derive(Default)]
pub(super) struct NearNumbers {
    /// The least number that has a place.
    least: i64,
    /// Codes by distance from the least number; empty before the first numbers.
    codes: Vec<u32>,
}

impl NearNumbers {
    /// Returns an empty list for whole numbers and days; `None` for other types, and for `UInt64`.
    pub(super) fn of_type(data_type: &DataType) -> Option<Self> {
        let is_whole = data_type.is_integer() && *data_type != DataType::UInt64;
        (is_whole || *data_type == DataType::Date32).then(Self::default)
    }

    /// Appends the code of each number to `codes`. NULL and numbers without a code are [`UNKNOWN`].
    pub(super) fn look_up(&self, numbers: &Int64Array, codes: &mut Vec<u32>) {
        let start = codes.len();
        let (known, least) = (self.codes.as_slice(), self.least);
        let code = |&number: &i64| known.get(place(number, least)).copied().unwrap_or(UNKNOWN);
        codes.extend(numbers.values().iter().map(code));
        if let Some(nulls) = numbers.nulls() {
            let of_nulls = codes[start..].iter_mut().zip(nulls).filter(|(_, is_valid)| !is_valid);
            of_nulls.for_each(|(code, _)| *code = UNKNOWN);
        }
    }

    /// Keeps the codes of numbers that have a place. Returns the number of those that have none.
    pub(super) fn learn(&mut self, numbers: &Int64Array, codes: &[usize]) -> usize {
        if self.codes.is_empty() {
            let Some(least) = numbers.iter().flatten().min() else { return 0 };
            // Some places below, for what comes later.
            self.least = least.saturating_sub(SPAN as i64 / 4);
            self.codes = vec![UNKNOWN; SPAN];
        }
        let mut without_place = 0;
        for (number, &code) in numbers.iter().zip(codes).filter_map(|(number, code)| Some((number?, code))) {
            match self.codes.get_mut(place(number, self.least)) {
                Some(known) => *known = code as u32,
                None => without_place += 1,
            }
        }
        without_place
    }

    /// Returns the bytes held.
    pub(super) fn size(&self) -> usize {
        self.codes.capacity() * size_of::<u32>()
    }
}

/// Returns the place of a number beyond the least one. A number below that wraps round, and has a place beyond all others.
#[inline]
fn place(number: i64, least: i64) -> usize {
    usize::try_from(number.wrapping_sub(least) as u64).unwrap_or(usize::MAX)
}
