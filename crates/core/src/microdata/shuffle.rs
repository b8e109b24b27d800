//! A random order of many rows, drawn on all cores: every row is put into a random bucket, and each bucket is shuffled by itself (Rao 1961,
//! Sandelius 1962). All orders are equally likely, and buckets fit into the cache, which rows from end to end do not.

use rand::seq::SliceRandom;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;

use super::thrown::{Thrown, together};

/// Fewer rows are shuffled at once.
const MANY: usize = 1 << 16;
/// Parts that rows are thrown into buckets by. Draws are by part and bucket, so that they are the same on any number of cores.
const PARTS: usize = 64;

/// Draws the seed of [`shuffle`] for so many items, if it draws at once.
pub(crate) fn drawn_at_once(items: usize, rng: &mut impl Rng) -> Option<[u8; 32]> {
    (items >= MANY).then(|| rng.random())
}

/// Puts items in random order.
pub fn shuffle<T: Copy + Default + Send + Sync>(items: &mut [T], rng: &mut impl Rng) {
    let Some(seed) = drawn_at_once(items.len(), rng) else {
        return items.shuffle(rng);
    };
    let stream = |number: usize| stream(seed, number);
    let size = items.len().div_ceil(PARTS);
    let parts = items.par_chunks(size).enumerate().map(|(number, part)| thrown(part, &mut stream(number)));
    let parts: Vec<Thrown<T>> = parts.collect();
    together(&parts, items, |number, bucket| bucket.shuffle(&mut stream(PARTS + number)));
}

/// Shuffles each of some lists, on all cores if there are many items.
pub fn shuffle_each<T: Send>(lists: &mut [&mut [T]], rng: &mut impl Rng) {
    match drawn_at_once(lists.iter().map(|list| list.len()).sum(), rng) {
        None => lists.iter_mut().for_each(|list| list.shuffle(rng)),
        Some(seed) => {
            let lists = lists.par_iter_mut().enumerate();
            lists.for_each(|(number, list)| list.shuffle(&mut stream(seed, number)));
        }
    }
}

fn stream(seed: [u8; 32], number: usize) -> ChaCha20Rng {
    let mut rng = ChaCha20Rng::from_seed(seed);
    rng.set_stream(number as u64);
    rng
}

/// Throws items, each into a random bucket.
fn thrown<T: Copy + Default>(part: &[T], rng: &mut ChaCha20Rng) -> Thrown<T> {
    let mut buckets = vec![0_u8; part.len()];
    rng.fill_bytes(&mut buckets);
    Thrown::new(part, &buckets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shuffled(rows: usize, seed: u64, threads: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..rows as u32).collect();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| shuffle(&mut order, &mut ChaCha20Rng::seed_from_u64(seed)));
        order
    }

    #[test]
    fn every_item_once_and_the_same_on_any_number_of_threads() {
        for rows in [0, 1, 1000, MANY - 1, MANY, MANY + 1, 100_003] {
            let order = shuffled(rows, 7, 1);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..rows as u32));
            assert_eq!(order, shuffled(rows, 7, 5));
        }
        assert_ne!(shuffled(MANY, 1, 2), shuffled(MANY, 2, 2));
    }

    /// Few items and many, lists of none and of one among them: the same on any number of threads, every item in its list, and no two lists alike.
    #[test]
    fn lists_are_shuffled_each_by_itself() {
        for size in [100, MANY] {
            let shuffled = |threads: usize| {
                let mut items: Vec<usize> = (0..2 * size + 1).collect();
                let (first, rest) = items.split_at_mut(size);
                let (second, third) = rest.split_at_mut(size);
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let mut rng = ChaCha20Rng::seed_from_u64(3);
                pool.install(|| shuffle_each(&mut [first, &mut [], second, third], &mut rng));
                items
            };
            let items = shuffled(1);
            assert_eq!(items, shuffled(5));
            let mut places = vec![0; size];
            let moved = items[..size].iter().enumerate().filter(|&(place, &item)| place != item).count();
            assert!(moved > size / 2);
            for (first, second) in items[..size].iter().zip(&items[size..2 * size]) {
                places[*first] += 1;
                places[*second - size] += 1;
            }
            assert!(places.iter().all(|&times| times == 2) && items[2 * size] == 2 * size);
            let alike = items[..size].iter().zip(&items[size..]).filter(|(first, second)| **first + size == **second);
            assert!(alike.count() < 10);
        }
    }

    /// The beginning of a short list beside a long one is uniform. Lists are shuffled by seeds and by one generator.
    #[test]
    fn lists_are_in_any_order() {
        const SIZE: usize = 8;
        const DRAWS: u64 = 400;
        let mut counts = [[0_u32; SIZE]; 2];
        let first = |rng: &mut ChaCha20Rng| {
            let (mut short, mut long) = ((0..SIZE).collect::<Vec<_>>(), vec![0; MANY]);
            shuffle_each(&mut [&mut short, &mut long], rng);
            short[0]
        };
        let mut one = ChaCha20Rng::seed_from_u64(0);
        for seed in 0..DRAWS {
            counts[0][first(&mut ChaCha20Rng::seed_from_u64(seed))] += 1;
            counts[1][first(&mut one)] += 1;
        }
        // Chi-square with 7 degrees of freedom: above 40 in one of a million samples.
        for counts in counts {
            let expected = DRAWS as f64 / SIZE as f64;
            let chi: f64 = counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
            assert!(chi < 40.0, "{counts:?}");
        }
    }

    /// The place of an item is uniform, and says nothing of its neighbour's.
    #[test]
    fn places_are_uniform_and_independent() {
        const ROWS: usize = 70_000;
        const CELLS: usize = 8;
        let mut counts = vec![0_u32; CELLS * CELLS];
        let mut joint = vec![0_u32; CELLS * CELLS];
        for seed in 0..4 {
            let order = shuffled(ROWS, seed, 2);
            let mut place = vec![0; ROWS];
            order.iter().enumerate().for_each(|(at, &item)| place[item as usize] = at);
            let cell = |at: usize| at * CELLS / ROWS;
            place.iter().enumerate().for_each(|(item, &at)| counts[cell(item) * CELLS + cell(at)] += 1);
            place.windows(2).for_each(|pair| joint[cell(pair[0]) * CELLS + cell(pair[1])] += 1);
            let kept = order.iter().zip(0..).filter(|(item, at)| **item == *at).count();
            assert!(kept < 10, "{kept} items where they were");
        }
        // Chi-square with at most 63 degrees of freedom: above 130 in one of a million samples.
        for counts in [counts, joint] {
            let all: u32 = counts.iter().sum();
            let expected = f64::from(all) / (CELLS * CELLS) as f64;
            let chi: f64 = counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
            assert!(chi < 130.0, "{chi}");
        }
    }
}
