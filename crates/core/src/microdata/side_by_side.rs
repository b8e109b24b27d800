//! Copies of rows that are looked at together, side by side. Rows are short, and there are many: a copy whose length is known when it is compiled
//! is one instruction or two, and any other one a call.

use rayon::prelude::*;

/// Appends rows of a table, each of which has `d` items.
pub(super) fn append_rows<T, U>(table: &[T], d: usize, rows: impl Iterator<Item = u32>, out: &mut Vec<U>)
where
    T: Copy + Default + Into<U>,
    U: Copy,
{
    out.reserve(rows.size_hint().0 * d);
    match d {
        0 => {}
        1 => append::<T, U, 1>(table, rows, out),
        2 => append::<T, U, 2>(table, rows, out),
        3 => append::<T, U, 3>(table, rows, out),
        4 => append::<T, U, 4>(table, rows, out),
        5 => append::<T, U, 5>(table, rows, out),
        6 => append::<T, U, 6>(table, rows, out),
        7 => append::<T, U, 7>(table, rows, out),
        8 => append::<T, U, 8>(table, rows, out),
        // Both ends of more intervals.
        10 => append::<T, U, 10>(table, rows, out),
        12 => append::<T, U, 12>(table, rows, out),
        14 => append::<T, U, 14>(table, rows, out),
        16 => append::<T, U, 16>(table, rows, out),
        _ => rows.for_each(|row| out.extend(table[row as usize * d..][..d].iter().map(|&item| item.into()))),
    }
}

fn append<T, U, const D: usize>(table: &[T], mut rows: impl Iterator<Item = u32>, out: &mut Vec<U>)
where
    T: Copy + Default + Into<U>,
    U: Copy,
{
    // As they are first, and then as they are wanted: rows are all over the memory, and the fewer instructions there are between one and the next, the
    // more of them a processor asks for at once.
    const NEAR: usize = 64;
    let (table, _) = table.as_chunks::<D>();
    let mut near = [[T::default(); D]; NEAR];
    loop {
        let mut count = 0;
        for (place, row) in near.iter_mut().zip(&mut rows) {
            *place = table[row as usize];
            count += 1;
        }
        out.extend(near[..count].as_flattened().iter().map(|&item| item.into()));
        if count < NEAR {
            return;
        }
    }
}

/// Copies rows of a table with `d` items each; on all cores.
pub fn copied_rows<T, U>(table: &[T], d: usize, rows: &[u32]) -> Vec<U>
where
    T: Copy + Default + Into<U> + Sync,
    U: Copy + Default + Send + Sync,
{
    const ROWS: usize = 1024;
    if rows.len() <= ROWS || d == 0 {
        let mut copies = Vec::new();
        append_rows(table, d, rows.iter().copied(), &mut copies);
        return copies;
    }
    let mut copies = vec![U::default(); rows.len() * d];
    let chunks = copies.par_chunks_mut(ROWS * d).zip(rows.par_chunks(ROWS));
    chunks.for_each_init(Vec::new, |near, (copies, rows)| {
        near.clear();
        append_rows(table, d, rows.iter().copied(), near);
        copies.copy_from_slice(near);
    });
    copies
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_any_length() {
        for d in 0..18_usize {
            let table: Vec<usize> = (0..5 * d).collect();
            let mut out = vec![99_usize];
            append_rows(&table, d, [3, 0, 3, 4].into_iter(), &mut out);
            let expected = [3, 0, 3, 4].into_iter().flat_map(|row| row * d..(row + 1) * d);
            assert!(out.into_iter().eq(std::iter::once(99).chain(expected)), "{d}");
            for rows in [0_u32, 1, 63, 64, 65, 1024, 5000] {
                let rows: Vec<u32> = (0..rows).map(|row| row * 7 % 5).collect();
                let expected = rows.iter().flat_map(|&row| row as usize * d..(row as usize + 1) * d);
                assert!(copied_rows::<_, usize>(&table, d, &rows).into_iter().eq(expected), "{d}");
            }
        }
    }
}
