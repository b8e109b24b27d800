//! Small parts of a matching: as many released rows as rows of a world, both from the same corner of the table.

use super::measure::Measure;
use crate::microdata::Microdata;

/// Rows of a release, and the people of a world that they are matched with.
pub(super) type Part<'a> = (&'a [u32], &'a [u32]);

/// What is cut.
pub(super) struct Cutting<'a> {
    pub microdata: &'a Microdata,
    pub measure: &'a Measure,
    /// Boxes of the released rows.
    pub boxes: &'a [[u32; 2]],
    /// Most rows of a part.
    pub most: usize,
}

impl Cutting<'_> {
    /// Cuts both sides alike, at the middle of the attribute that spreads most, until parts are small enough. Where there is an end of a
    /// value near the middle, values stay together. Both sides have nearly the same values, so both sides of a cut have, too. Rows that
    /// tie stay in the order in which they came, which must be random.
    pub(super) fn cut<'a>(&self, rows: &'a mut [u32], people: &'a mut [u32], parts: &mut Vec<Part<'a>>) {
        let n = rows.len();
        if n <= self.most {
            parts.push((rows, people));
            return;
        }
        let mut middle = self.middle(n);
        if let Some(j) = self.widest(rows, people) {
            let code = |person: u32| 2 * self.microdata.quasi_of(person)[j];
            rows.sort_by_key(|&row| self.center(row, j));
            people.sort_by_key(|&person| code(person));
            middle = near_middle(middle, n, |place| code(people[place - 1]) != code(people[place]));
        }
        let (rows, more_rows) = rows.split_at_mut(middle);
        let (people, more_people) = people.split_at_mut(middle);
        self.cut(rows, people, parts);
        self.cut(more_rows, more_people, parts);
    }

    /// Cuts rows alone, for parts in which every row keeps the person that it has.
    pub(super) fn cut_rows<'a>(&self, rows: &'a mut [u32], parts: &mut Vec<&'a [u32]>) {
        let n = rows.len();
        if n <= self.most {
            parts.push(rows);
            return;
        }
        let mut middle = self.middle(n);
        if let Some(j) = self.widest(rows, &[]) {
            rows.sort_by_key(|&row| self.center(row, j));
            middle = near_middle(middle, n, |place| self.center(rows[place - 1], j) != self.center(rows[place], j));
        }
        let (rows, more_rows) = rows.split_at_mut(middle);
        self.cut_rows(rows, parts);
        self.cut_rows(more_rows, parts);
    }

    /// As many rows as whole parts need.
    fn middle(&self, n: usize) -> usize {
        let pieces = n.div_ceil(self.most);
        n * (pieces / 2) / pieces
    }

    /// Twice the place of a row. Where there is a hierarchy, nodes jump, and their middles say little: there, that of the person whom the row
    /// began with, who has the row's number.
    fn center(&self, row: u32, j: usize) -> u32 {
        match self.microdata.quasi[j].hierarchy {
            Some(_) => 2 * self.microdata.quasi_of(row)[j],
            None => self.boxes[row as usize * self.microdata.quasi.len() + j].iter().sum(),
        }
    }

    /// The quasi-identifier that spreads most over both sides; `None` if all are alike.
    fn widest(&self, rows: &[u32], people: &[u32]) -> Option<usize> {
        let d = self.microdata.quasi.len();
        let mut ends = vec![(f32::INFINITY, f32::NEG_INFINITY); d];
        let mut widen = |j: usize, at: f32| ends[j] = (ends[j].0.min(at), ends[j].1.max(at));
        for &row in rows {
            (0..d).for_each(|j| widen(j, 0.5 * self.center(row, j) as f32));
        }
        for &person in people {
            self.microdata.quasi_of(person).iter().enumerate().for_each(|(j, &code)| widen(j, code as f32));
        }
        let widths = ends.iter().enumerate().map(|(j, &(lo, hi))| (self.measure.width(j, lo, hi), j));
        widths.filter(|(width, _)| *width > 0.0).max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))).map(|(_, j)| j)
    }
}

/// The place nearest to the middle, of those not far from it, at which a value ends; the middle if there is none.
fn near_middle(middle: usize, n: usize, ends: impl Fn(usize) -> bool) -> usize {
    let near = (0..n / 4).flat_map(|off| [middle.saturating_sub(off), middle + off]);
    near.filter(|&place| place > 0 && place < n).find(|&place| ends(place)).unwrap_or(middle)
}
