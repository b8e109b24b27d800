//! Lists cut at a rank: which rows lie lowest.

use super::{FOUR, Item, NOWHERE, Place, Tag};

/// Room to put rows in order. As large as the longest list that it was used for.
pub(crate) struct Spare<const W: usize, T> {
    places: Vec<Place>,
    items: Vec<Item<W, T>>,
}

/// Shorter lists are not worth a table of counts.
const COUNTED_FROM: usize = 512;
/// Tables that are counted in, in turn: rows that lie together, as many do, would wait for each other's count.
const TABLES: usize = 4;

impl<const W: usize, T> Default for Spare<W, T> {
    fn default() -> Self {
        Self { places: Vec::new(), items: Vec::new() }
    }
}

impl<const W: usize, T: Tag> Spare<W, T> {
    /// Tells the `cut` lowest rows of a list, when asked about all in order. Of rows that lie at the cut, the first ones:
    /// their order is random, so that no attribute that was cut before decides between rows that are alike in this one.
    pub(crate) fn lowest(
        &mut self,
        list: &[Item<W, T>],
        attribute: usize,
        cut: usize,
    ) -> impl FnMut(&Item<W, T>) -> bool + use<W, T> {
        let places = list.iter().map(|item| item.place(attribute));
        // All lie below, or none does.
        let (mut median, mut equal) = (if cut == 0 { i32::MIN } else { i32::MAX }, 0);
        if cut > 0 && cut < list.len() {
            self.places.clear();
            let (at, below) = match list.len() < COUNTED_FROM {
                true => {
                    self.places.extend(places);
                    selected(&mut self.places, cut - 1)
                }
                false => counted(places, &mut self.places, cut - 1),
            };
            (median, equal) = (i32::from(at), cut - below);
        }
        move |item| {
            let place = i32::from(item.place(attribute));
            let is_last = (place == median) & (equal > 0);
            equal -= usize::from(is_last);
            is_last | (place < median)
        }
    }

    /// Moves the [`lowest`](Self::lowest) `cut` rows of a list to its front; both sides keep their order.
    pub(crate) fn lowest_first(&mut self, list: &mut [Item<W, T>], attribute: usize, cut: usize) {
        if cut == 0 || cut >= list.len() {
            return;
        }
        let mut is_low = self.lowest(list, attribute, cut);
        if self.items.len() < list.len() {
            self.items.resize(list.len(), Item { row: 0, tag: T::default(), at: [[NOWHERE; FOUR]; W] });
        }
        let ordered = &mut self.items[..list.len()];
        let (mut left, mut right) = (0, cut);
        for item in list.iter() {
            let low = is_low(item);
            // Sides are a coin's toss, which a branch would mispredict.
            ordered[if low { left } else { right }] = *item;
            left += usize::from(low);
            right += usize::from(!low);
        }
        list.copy_from_slice(ordered);
    }
}

/// Returns the place at a rank, and the number of places below it. The rank is below the number of places.
fn selected(places: &mut [Place], rank: usize) -> (Place, usize) {
    let (low, &mut at, _) = places.select_nth_unstable(rank);
    (at, low.iter().filter(|&&place| place < at).count())
}

/// Returns the same without a comparison: counted by the upper half of their bits, and where these do not tell, by the lower.
/// `copies` is empty, and is filled.
fn counted(places: impl ExactSizeIterator<Item = Place>, copies: &mut Vec<Place>, rank: usize) -> (Place, usize) {
    let upper = |place: Place| (place >> 8) as u8 ^ 1 << 7;
    copies.extend(places);
    let mut counts = [[0_u32; 256]; TABLES];
    let (chunks, rest) = copies.as_chunks::<TABLES>();
    for places in chunks {
        counts.iter_mut().zip(places).for_each(|(counts, &place)| counts[usize::from(upper(place))] += 1);
    }
    rest.iter().for_each(|&place| counts[0][usize::from(upper(place))] += 1);
    let sums = |counts: &[[u32; 256]; TABLES], byte: usize| counts.iter().map(|table| table[byte] as usize).sum();
    let (at, below) = rank_of(rank, |byte| sums(&counts, byte));
    let at = at as u8;
    // Loops over vectors.
    let (mut least, mut greatest) = (Place::MAX, Place::MIN);
    for &place in copies.iter() {
        least = least.min(if upper(place) == at { place } else { Place::MAX });
    }
    for &place in copies.iter() {
        greatest = greatest.max(if upper(place) == at { place } else { Place::MIN });
    }
    if least == greatest {
        return (least, below);
    }
    let mut counts = [[0_u32; 256]; TABLES];
    for (number, &place) in copies.iter().enumerate() {
        counts[number % TABLES][usize::from(place as u8)] += u32::from(upper(place) == at);
    }
    let (lower, more_below) = rank_of(rank - below, |byte| sums(&counts, byte));
    (Place::from_be_bytes([at ^ 1 << 7, lower as u8]), below + more_below)
}

/// Returns the byte at a rank of counted bytes, and the number below it.
fn rank_of(rank: usize, count: impl Fn(usize) -> usize) -> (usize, usize) {
    let (mut byte, mut below) = (0, 0);
    while byte < 255 && below + count(byte) <= rank {
        below += count(byte);
        byte += 1;
    }
    (byte, below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_come_first_and_both_sides_keep_their_order() {
        for rows in [0, 1, 2, 7, 300, 3000] {
            // Few places, so that many rows lie at the cut.
            let list: Vec<Item<1, ()>> = (0..rows)
                .map(|row| Item { row, tag: (), at: [[0, (row * 7 % 5) as Place * 90 - 200, 0, 0]] })
                .collect();
            for cut in [0, 1, rows as usize / 2, (rows as usize).saturating_sub(1), rows as usize] {
                let (mut sorted, mut cut_list) = (list.clone(), list.clone());
                sorted.sort_by_key(|item| item.place(1));
                let mut expected: Vec<u32> = sorted.iter().map(|item| item.row).collect();
                let cut = cut.min(expected.len());
                expected[..cut].sort_unstable();
                expected[cut..].sort_unstable();
                Spare::default().lowest_first(&mut cut_list, 1, cut);
                if (1..list.len()).contains(&cut) {
                    assert_eq!(cut_list.iter().map(|item| item.row).collect::<Vec<_>>(), expected, "{rows} {cut}");
                }
                let mut spare = Spare::default();
                let mut is_low = spare.lowest(&list, 1, cut);
                let low: Vec<u32> = list.iter().filter(|item| is_low(item)).map(|item| item.row).collect();
                assert_eq!(low, expected[..cut]);
            }
        }
    }

    /// Places are counted as if sorted, wherever they are. They differ in their lower bits only, are of few values, at the ends, and all alike.
    #[test]
    fn places_are_counted_as_if_they_were_sorted() {
        let shapes: [fn(u32) -> Place; 5] = [
            |mixed| mixed as Place,
            |mixed| 1000 + (mixed % 600) as Place,
            |mixed| ((mixed % 3) as Place - 1) * 20_000,
            |mixed| if mixed.is_multiple_of(2) { Place::MIN } else { Place::MAX },
            |_| Place::MAX,
        ];
        for (shape, place) in shapes.into_iter().enumerate() {
            let places: Vec<Place> = (0..1001_u32).map(|row| place(row.wrapping_mul(0x9e37_79b9) >> 7)).collect();
            let mut sorted = places.clone();
            sorted.sort_unstable();
            for rank in (0..places.len()).step_by(77).chain([1000]) {
                let expected = (sorted[rank], sorted.partition_point(|&other| other < sorted[rank]));
                assert_eq!(counted(places.iter().copied(), &mut Vec::new(), rank), expected, "{shape} {rank}");
                assert_eq!(selected(&mut places.clone(), rank), expected, "{shape} {rank}");
            }
        }
    }
}
