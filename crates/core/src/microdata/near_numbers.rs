//! Codes of whole numbers that lie close together, by the numbers themselves: ages, years, codes of regions. A hash of each would take most of
//! the time in which a table is read.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type,
};

/// Greatest distance between the least and the greatest number whose codes are kept.
const SPAN: usize = 1 << 14;
/// The code of what has none here.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// Codes by number.
pub(super) struct NearNumbers {
    /// The least number that there is room for.
    least: i64,
    /// By distance from it; empty before the first numbers.
    codes: Vec<u32>,
    null: u32,
}

/// Calls `$self.$function::<T>(array, ..)` with the type of whole numbers that an array has; the array is of one of these types.
macro_rules! by_type {
    ($self:ident.$function:ident($array:ident $(, $argument:expr)*)) => {
        match $array.data_type() {
            DataType::Int8 => $self.$function($array.as_primitive::<Int8Type>() $(, $argument)*),
            DataType::Int16 => $self.$function($array.as_primitive::<Int16Type>() $(, $argument)*),
            DataType::Int32 => $self.$function($array.as_primitive::<Int32Type>() $(, $argument)*),
            DataType::Int64 => $self.$function($array.as_primitive::<Int64Type>() $(, $argument)*),
            DataType::UInt8 => $self.$function($array.as_primitive::<UInt8Type>() $(, $argument)*),
            DataType::UInt16 => $self.$function($array.as_primitive::<UInt16Type>() $(, $argument)*),
            DataType::UInt32 => $self.$function($array.as_primitive::<UInt32Type>() $(, $argument)*),
            _ => $self.$function($array.as_primitive::<Date32Type>() $(, $argument)*),
        }
    };
}

impl NearNumbers {
    /// Returns an encoder for whole numbers of at most 64 bits or days; `None` for other types.
    pub(super) fn of_type(data_type: &DataType) -> Option<Self> {
        let whole = data_type.is_integer() && *data_type != DataType::UInt64;
        (whole || *data_type == DataType::Date32).then(|| Self { least: 0, codes: Vec::new(), null: UNKNOWN })
    }

    /// Appends the codes of numbers, and [`UNKNOWN`] for those without one. The places of the latter go to `unknown`.
    pub(super) fn look_up(&self, numbers: &ArrayRef, codes: &mut Vec<u32>, unknown: &mut Vec<u32>) {
        by_type!(self.look_up_in(numbers, codes, unknown));
    }

    fn look_up_in<T>(&self, numbers: &PrimitiveArray<T>, codes: &mut Vec<u32>, unknown: &mut Vec<u32>)
    where
        T: ArrowPrimitiveType<Native: Into<i64>>,
    {
        let start = codes.len();
        codes.extend(numbers.values().iter().map(|&number| self.code(number.into())));
        let codes = &mut codes[start..];
        if let Some(nulls) = numbers.nulls().filter(|nulls| nulls.null_count() > 0) {
            codes.iter_mut().zip(nulls).filter(|(_, valid)| !valid).for_each(|(code, _)| *code = self.null);
        }
        unknown.extend((0..).zip(codes.iter()).filter(|(_, code)| **code == UNKNOWN).map(|(place, _)| place));
    }

    #[inline]
    fn code(&self, number: i64) -> u32 {
        let place = number.wrapping_sub(self.least) as u64;
        usize::try_from(place).ok().and_then(|place| self.codes.get(place)).copied().unwrap_or(UNKNOWN)
    }

    /// Keeps the codes of numbers, as far as there is room for them. Returns for how many there is none.
    pub(super) fn learn(&mut self, numbers: &ArrayRef, codes: &[usize]) -> usize {
        by_type!(self.learn_in(numbers, codes))
    }

    fn learn_in<T>(&mut self, numbers: &PrimitiveArray<T>, codes: &[usize]) -> usize
    where
        T: ArrowPrimitiveType<Native: Into<i64>>,
    {
        if self.codes.is_empty() {
            let Some(least) = numbers.iter().flatten().map(Into::into).min() else { return 0 };
            // Some room below, for what comes later.
            self.least = least.saturating_sub(SPAN as i64 / 4);
            self.codes = vec![UNKNOWN; SPAN];
        }
        let mut far = 0;
        for (number, &code) in numbers.iter().zip(codes) {
            match number {
                None => self.null = code as u32,
                Some(number) => {
                    let place = number.into().wrapping_sub(self.least) as u64;
                    match usize::try_from(place).ok().and_then(|place| self.codes.get_mut(place)) {
                        Some(known) => *known = code as u32,
                        None => far += 1,
                    }
                }
            }
        }
        far
    }

    /// Returns the bytes held.
    pub(super) fn size(&self) -> usize {
        self.codes.capacity() * size_of::<u32>()
    }
}
