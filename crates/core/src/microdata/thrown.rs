//! Many items put into buckets on all cores: each part of them by itself, and then what parts have of a bucket side by side. A bucket fits into
//! the cache, which items from end to end do not.

use rayon::prelude::*;

/// Number of buckets.
pub(super) const BUCKETS: usize = 256;

/// A part, bucket by bucket; items of a bucket are in the order that they came in.
pub(super) struct Thrown<T> {
    items: Vec<T>,
    starts: Vec<usize>,
}

impl<T: Copy + Default> Thrown<T> {
    /// Throws items, each of which has a bucket.
    pub(super) fn new(part: &[T], buckets: &[u8]) -> Self {
        let mut starts = vec![0; BUCKETS + 1];
        buckets.iter().for_each(|&bucket| starts[bucket as usize + 1] += 1);
        for bucket in 0..BUCKETS {
            starts[bucket + 1] += starts[bucket];
        }
        let (mut items, mut next) = (vec![T::default(); part.len()], starts.clone());
        for (&item, &bucket) in part.iter().zip(buckets) {
            let next = &mut next[bucket as usize];
            items[*next] = item;
            *next += 1;
        }
        Self { items, starts }
    }

    /// Returns the items of a bucket.
    pub(super) fn of(&self, bucket: usize) -> &[T] {
        &self.items[self.starts[bucket]..self.starts[bucket + 1]]
    }
}

/// Makes room for so many items on all cores: the system takes longer to give memory than to fill it.
pub fn room<T: Default + Send>(items: usize) -> Vec<T> {
    const ROOM: usize = 1 << 14;
    (0..items).into_par_iter().with_min_len(ROOM).map(|_| T::default()).collect()
}

/// Fills `items` with what all parts have, bucket by bucket. Returns what `each` makes of every bucket and its number.
pub(super) fn together<T: Copy + Default + Send + Sync, R: Send>(
    parts: &[Thrown<T>],
    items: &mut [T],
    each: impl Fn(usize, &mut [T]) -> R + Sync,
) -> Vec<R> {
    let buckets = of_buckets(parts, items).into_par_iter().enumerate().map(|(number, bucket)| {
        let mut left = &mut *bucket;
        for part in parts {
            let (place, after) = left.split_at_mut(part.of(number).len());
            place.copy_from_slice(part.of(number));
            left = after;
        }
        each(number, bucket)
    });
    buckets.collect()
}

/// Fills like [`together`], but with the results of parts, after `each` has seen a bucket; it may be smaller.
pub(super) fn made_of<T: Copy + Default + Send + Sync, U: Send, R: Send>(
    parts: &[Thrown<T>],
    items: &mut [U],
    each: impl Fn(&mut [T]) -> R + Sync,
    make: impl Fn(T) -> U + Sync,
) -> Vec<R> {
    let buckets = of_buckets(parts, items).into_par_iter().enumerate().map(|(number, bucket)| {
        let mut whole = Vec::with_capacity(bucket.len());
        parts.iter().for_each(|part| whole.extend_from_slice(part.of(number)));
        let made = each(&mut whole);
        bucket.iter_mut().zip(whole).for_each(|(place, item)| *place = make(item));
        made
    });
    buckets.collect()
}

/// Divides room among the buckets.
fn of_buckets<'a, T: Copy + Default, U>(parts: &[Thrown<T>], items: &'a mut [U]) -> Vec<&'a mut [U]> {
    let mut buckets = Vec::with_capacity(BUCKETS);
    let mut left = items;
    for number in 0..BUCKETS {
        let (bucket, after) = left.split_at_mut(parts.iter().map(|part| part.of(number).len()).sum());
        buckets.push(bucket);
        left = after;
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_have_all_of_their_items_in_order() {
        let items: Vec<u32> = (0..10_000).collect();
        let bucket = |item: u32| (item * 7 % 251) as u8;
        let parts: Vec<Thrown<u32>> = items
            .chunks(999)
            .map(|part| Thrown::new(part, &part.iter().map(|&item| bucket(item)).collect::<Vec<_>>()))
            .collect();
        let mut out = vec![0; items.len()];
        let buckets = together(&parts, &mut out, |number, items| {
            assert!(items.iter().all(|&item| usize::from(bucket(item)) == number));
            items.len()
        });
        let mut expected = items;
        expected.sort_by_key(|&item| bucket(item));
        assert_eq!(out, expected);
        let mut made = vec![0; expected.len()];
        let last = made_of(
            &parts,
            &mut made,
            |items| {
                items.reverse();
                items.first().copied()
            },
            |item| u64::from(item) + 1,
        );
        expected.sort_by_key(|&item| (bucket(item), std::cmp::Reverse(item)));
        assert!(made.into_iter().eq(expected.iter().map(|&item| u64::from(item) + 1)));
        assert_eq!(last.len(), BUCKETS);
        assert_eq!(last[0], Some(expected[0]));
        assert_eq!(buckets.len(), BUCKETS);
        assert_eq!(buckets.into_iter().sum::<usize>(), out.len());
    }
}
