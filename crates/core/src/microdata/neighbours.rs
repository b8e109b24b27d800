//! Rows in another order: those that lie close together stand close together.
//!
//! Methods that look from row to row, and from there to a third one, look all over the memory if rows stand in random order, and of a large table every
//! look misses the cache. Rows that they have to do with lie close by, so in this order most looks hit what was just looked at.

use rayon::prelude::*;

use super::{Microdata, copied_rows};

/// Rows of a table that is put in order; of fewer, all that is looked at stays in the cache as it is.
pub const MANY: usize = 1 << 16;
/// Rows that are looked at on one core.
const PIECE: usize = 1 << 10;

impl Microdata {
    /// Orders the rows along a curve through the space of quasi-identifiers (Morton's: bits of all of them in turn, the highest first), by how many rows have
    /// lower codes in each. Rows that lie at one place stand in the order that they had. It depends on quasi-identifiers and that order only.
    pub fn by_place(&self) -> Vec<u32> {
        let bits_of_places = self.bits_of_places();
        let keyed = |row: u32| {
            let places = self.quasi_of(row).zip(&bits_of_places).map(|(code, bits)| bits[code as usize]);
            u64::from(places.fold(0, |all, bits| all | bits)) << u32::BITS | u64::from(row)
        };
        let mut rows: Vec<u64> = (0..self.rows as u32).into_par_iter().with_min_len(PIECE).map(keyed).collect();
        rows.par_sort_unstable();
        rows.into_par_iter().with_min_len(PIECE).map(|keyed| keyed as u32).collect()
    }

    /// Returns for each code the bits of its place as a key has them. There is a list for each quasi-identifier. Of more than 32, the first ones decide.
    fn bits_of_places(&self) -> Vec<Vec<u32>> {
        let d = self.quasi.len().min(u32::BITS as usize);
        if d == 0 {
            return Vec::new();
        }
        let bits = (u32::BITS as usize / d).min(u16::BITS as usize);
        let of_column = |j: usize| {
            let mut counts = vec![0_u64; self.quasi[j].domain.len()];
            (0..self.rows as u32).for_each(|row| counts[self.quasi_at(row, j) as usize] += 1);
            let mut below = 0;
            let place = |count: u64| {
                let place = ((below + count / 2) << bits) / self.rows.max(1) as u64;
                below += count;
                (0..bits).filter(|bit| place >> bit & 1 == 1).fold(0, |all, bit| all | 1 << (bit * d + d - 1 - j))
            };
            counts.into_iter().map(place).collect::<Vec<u32>>()
        };
        (0..d).into_par_iter().map(of_column).collect()
    }

    /// Puts the rows in order [`by_place`](Self::by_place), which is returned. Values have no say in it, so that it is the same whoever has which.
    pub fn put_by_place(&mut self) -> Vec<u32> {
        let order = self.by_place();
        self.put_in_order(&order);
        order
    }

    /// Puts the rows in an order, which names each of them once.
    fn put_in_order(&mut self, order: &[u32]) {
        self.quasi_codes = self.quasi_codes.part(order);
        if !self.sensitive_codes.is_empty() {
            self.sensitive_codes = self.sensitive_codes.of_rows(order);
        }
        if !self.other.is_empty() {
            self.other_codes = copied_rows(&self.other_codes, self.other.len(), order);
        }
        if let Some((_, codes)) = &mut self.within {
            *codes = copied_rows(codes, 1, order);
        }
        if let Some(people) = &mut self.people {
            people.arrival = copied_rows(&people.arrival, 1, order);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, AsArray, Int32Array, Int64Array, RecordBatch};
    use datafusion::arrow::datatypes::Int64Type;
    use proptest::prelude::*;

    use super::*;
    use crate::microdata::{Layout, MicrodataBuilder, Roles};

    /// Returns the columns by names: `id`, `q..`, `s`, `o..` and `w`.
    fn microdata(columns: &[(String, Vec<i32>)]) -> Microdata {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values((0..columns[0].1.len() as i64).map(|id| 7 * id)));
        let arrays =
            columns.iter().map(|(name, column)| (name.clone(), Arc::new(Int32Array::from(column.clone())) as ArrayRef));
        let batch = RecordBatch::try_from_iter([("id".to_owned(), ids)].into_iter().chain(arrays)).unwrap();
        let named = |first: &str| -> Vec<String> {
            columns.iter().map(|(name, _)| name.clone()).filter(|name| name.starts_with(first)).collect()
        };
        let roles = Roles {
            id: Some("id".to_owned()),
            quasi: named("q"),
            sensitive: named("s").pop(),
            other: named("o"),
            within: named("w").pop(),
            ..Roles::default()
        };
        let mut builder = MicrodataBuilder::try_new(Layout::try_new(&batch.schema(), &roles).unwrap()).unwrap();
        builder.append(&batch).unwrap();
        builder.finish([3, 4]).unwrap()
    }

    /// Returns all that a row has.
    fn row(microdata: &Microdata, row: u32) -> (i64, Vec<u32>, u32, Vec<u32>, u32) {
        let people = microdata.people.as_ref().unwrap();
        (
            people.identifiers.as_primitive::<Int64Type>().value(people.arrival[row as usize] as usize),
            microdata.quasi_of(row).collect(),
            microdata.sensitive_codes.at(row),
            microdata.other_of(row).to_vec(),
            microdata.within.as_ref().unwrap().1[row as usize],
        )
    }

    fn columns(
        quasi: usize,
        values: i32,
        rows: std::ops::Range<usize>,
    ) -> impl Strategy<Value = Vec<(String, Vec<i32>)>> {
        let names = (0..quasi).map(|j| format!("q{j}")).chain(["s", "w", "o0", "o1"].map(str::to_owned));
        let names: Vec<String> = names.collect();
        rows.prop_flat_map(move |rows| {
            let column = prop::collection::vec(0..values, rows);
            prop::collection::vec(column, names.len()).prop_map({
                let names = names.clone();
                move |columns| names.iter().cloned().zip(columns).collect()
            })
        })
    }

    proptest! {
        /// Every row stays what it is, whatever the order; that by place is one, also of no rows and of more columns than there are bits.
        #[test]
        fn rows_keep_what_is_theirs(
            columns in prop::sample::select(vec![(1, 3), (2, 70_000), (3, 300), (33, 4), (40, 2)])
                .prop_flat_map(|(quasi, values)| columns(quasi, values, 0..40)),
        ) {
            let mut microdata = microdata(&columns);
            let before: Vec<_> = (0..microdata.rows as u32).map(|at| row(&microdata, at)).collect();
            let order = microdata.put_by_place();
            let mut all = order.clone();
            all.sort_unstable();
            prop_assert!(all.into_iter().eq(0..microdata.rows as u32));
            for (at, &was) in (0..).zip(&order) {
                prop_assert_eq!(&row(&microdata, at), &before[was as usize]);
            }
            // Rows at one place keep their order, and stand together.
            prop_assert!(microdata.by_place().into_iter().eq(0..microdata.rows as u32));
        }
    }

    /// Half of the neighbouring rows differ by little; in random order they differ by a third of the way.
    #[test]
    fn rows_that_stand_together_lie_close_together() {
        let column = |step: usize| (0..4000).map(|row| (row * step % 4001 % 256) as i32).collect::<Vec<i32>>();
        let names = [("q0", 1731), ("q1", 613), ("s", 17), ("w", 1), ("o", 1)];
        let columns: Vec<_> = names.map(|(name, step)| (name.to_owned(), column(step))).into();
        let mut microdata = microdata(&columns);
        let far = |microdata: &Microdata| {
            let apart = |row: u32, j: usize| microdata.quasi_at(row, j).abs_diff(microdata.quasi_at(row + 1, j));
            let mut far: Vec<u32> =
                (0..microdata.rows as u32 - 1).map(|row| apart(row, 0).max(apart(row, 1))).collect();
            far.sort_unstable();
            far[far.len() / 2]
        };
        assert!(far(&microdata) > 80);
        microdata.put_by_place();
        assert!(far(&microdata) < 10);
    }
}
