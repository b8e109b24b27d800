//! Lists cut at a rank: which rows lie lowest.

use super::{Item, Tag};

/// Room to put rows in order. As large as the longest list that it was used for.
pub(in crate::methods) struct Spare<const W: usize, T> {
    /// Positions as whole numbers.
    places: Vec<u32>,
    items: Vec<Item<W, T>>,
}

impl<const W: usize, T> Default for Spare<W, T> {
    fn default() -> Self {
        Self { places: Vec::new(), items: Vec::new() }
    }
}

impl<const W: usize, T: Tag> Spare<W, T> {
    /// Tells the `cut` rows of a list that lie lowest, when it is asked about all of them in order. Of rows that lie at the cut, the first ones:
    /// their order is random, so that no attribute that was cut before decides between rows that are alike in this one.
    pub(in crate::methods) fn lowest(
        &mut self,
        list: &[Item<W, T>],
        attribute: usize,
        cut: usize,
    ) -> impl FnMut(&Item<W, T>) -> bool + use<W, T> {
        // Positions are not negative, so that their bits are in their order: whole numbers are selected without a branch.
        let place = move |item: &Item<W, T>| item.at[attribute].to_bits();
        let (mut equal, mut median) = (0, 0);
        if cut >= list.len() {
            median = u32::MAX;
        } else if cut > 0 {
            self.places.clear();
            self.places.extend(list.iter().map(place));
            let (low, at, _) = self.places.select_nth_unstable(cut - 1);
            median = *at;
            equal = cut - low.iter().filter(|&&place| place < median).count();
        }
        move |item| {
            let place = place(item);
            let is_last = (place == median) & (equal > 0);
            equal -= usize::from(is_last);
            is_last | (place < median)
        }
    }

    /// Moves the [`lowest`](Self::lowest) `cut` rows of a list to its front; both sides keep their order.
    pub(in crate::methods) fn lowest_first(&mut self, list: &mut [Item<W, T>], attribute: usize, cut: usize) {
        if cut == 0 || cut >= list.len() {
            return;
        }
        let mut is_low = self.lowest(list, attribute, cut);
        if self.items.len() < list.len() {
            self.items.resize(list.len(), Item { row: 0, tag: T::default(), at: [0.0; W] });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_come_first_and_both_sides_keep_their_order() {
        for rows in [0, 1, 2, 7, 300] {
            // Few positions, so that many rows lie at the cut.
            let list: Vec<Item<4, ()>> =
                (0..rows).map(|row| Item { row, tag: (), at: [0.0, (row * 7 % 5) as f32 / 4.0, 0.0, 0.0] }).collect();
            for cut in [0, 1, rows as usize / 2, (rows as usize).saturating_sub(1), rows as usize] {
                let (mut sorted, mut cut_list) = (list.clone(), list.clone());
                sorted.sort_by(|a, b| a.at[1].total_cmp(&b.at[1]));
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
}
