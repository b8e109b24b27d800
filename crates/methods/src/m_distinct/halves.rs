//! Rows by entry and value on both sides of a cut, and moves across it.

use rustc_hash::FxHashMap;

use crate::split::Item;

/// A number for each of some values. Halves are searched for often, so looks at a number and forgetting all numbers take a few instructions.
pub(super) struct Places {
    /// Round and number of each value: a number counts in its round only. Empty if there are more values than rows.
    table: Vec<[u32; 2]>,
    /// The same where the table is empty.
    map: FxHashMap<u32, [u32; 2]>,
    round: u32,
}

impl Places {
    /// Makes room for so many values in so many rows.
    pub(super) fn new(values: usize, rows: usize) -> Self {
        let table = if values <= rows { vec![[0, 0]; values] } else { Vec::new() };
        Self { table, map: FxHashMap::default(), round: 1 }
    }

    #[inline]
    fn known(&mut self, value: u32) -> &mut [u32; 2] {
        if self.table.is_empty() { self.map.entry(value).or_default() } else { &mut self.table[value as usize] }
    }

    /// Forgets all numbers.
    pub(super) fn forget(&mut self) {
        self.round = self.round.checked_add(1).unwrap_or_else(|| {
            self.table.fill([0, 0]);
            self.map.clear();
            1
        });
    }

    /// Returns the number of a value, which is this one if it has none yet.
    #[inline]
    pub(super) fn get_or_insert(&mut self, value: u32, number: u32) -> u32 {
        let round = self.round;
        let known = self.known(value);
        if known[0] != round {
            *known = [round, number];
        }
        known[1]
    }

    #[inline]
    pub(super) fn of(&self, value: u32) -> usize {
        let known = if self.table.is_empty() { self.map.get(&value) } else { self.table.get(value as usize) };
        known.map_or(0, |known| known[1] as usize)
    }

    pub(super) fn are_at_most(&mut self, rows: usize, mut values: impl Iterator<Item = u32>) -> bool {
        self.forget();
        let round = self.round;
        values.all(|value| {
            let known = self.known(value);
            let before = if known[0] == round { known[1] } else { 0 };
            *known = [round, before + 1];
            (before as usize) < rows
        })
    }

    /// Numbers the values of some rows, ascending from 0; returns how many they are.
    fn number(&mut self, values: impl Iterator<Item = u32>) -> usize {
        self.forget();
        let mut different: Vec<u32> = Vec::new();
        for value in values {
            let number = different.len() as u32;
            if self.get_or_insert(value, number) == number {
                different.push(value);
            }
        }
        different.sort_unstable();
        for (&value, number) in different.iter().zip(0..) {
            self.known(value)[1] = number;
        }
        different.len()
    }
}

/// Numbers of rows by entry and value.
#[derive(Clone)]
pub(super) struct Counts {
    values: usize,
    entries: usize,
    /// Entry after entry.
    rows: Vec<usize>,
}

impl Counts {
    fn new(entries: usize, values: usize) -> Self {
        Self { values, entries, rows: vec![0; entries * values] }
    }

    pub(super) fn of(&self, entry: usize) -> &[usize] {
        &self.rows[entry * self.values..][..self.values]
    }

    fn get(&self, entry: usize, value: usize) -> usize {
        self.rows[entry * self.values + value]
    }

    fn change(&mut self, entry: usize, value: usize) -> &mut usize {
        &mut self.rows[entry * self.values + value]
    }

    fn degree(&self, value: usize) -> usize {
        (0..self.entries).map(|entry| self.get(entry, value)).sum()
    }
}

/// Rows by entry and value on the two sides of a cut.
pub(super) struct Halves {
    left: Counts,
    right: Counts,
    /// Groups on either side.
    heights: [usize; 2],
}

impl Halves {
    /// Numbers the values of lists with two sides each. Afterwards values have their numbers in `places`.
    pub(super) fn new<'a, const W: usize, I>(sides: impl Fn() -> I, heights: [usize; 2], places: &mut Places) -> Self
    where
        I: ExactSizeIterator<Item = (&'a [Item<W, u32>], &'a [Item<W, u32>])>,
    {
        let values = places.number(sides().flat_map(|(left, right)| left.iter().chain(right)).map(|item| item.tag));
        let entries = sides().len();
        let (mut left, mut right) = (Counts::new(entries, values), Counts::new(entries, values));
        for (entry, (on_left, on_right)) in sides().enumerate() {
            on_left.iter().for_each(|item| *left.change(entry, places.of(item.tag)) += 1);
            on_right.iter().for_each(|item| *right.change(entry, places.of(item.tag)) += 1);
        }
        Self { left, right, heights }
    }

    pub(super) fn left(&self) -> &Counts {
        &self.left
    }

    pub(super) fn balance(&mut self) {
        let [left, right] = self.heights;
        relieve(&mut self.left, &mut self.right, left, right);
        relieve(&mut self.right, &mut self.left, right, left);
    }
}

/// Moves rows until no value has more than `height` of them on the first side. On the other side none may have more
/// than `other`, nor any entry.
fn relieve(from: &mut Counts, to: &mut Counts, height: usize, other: usize) {
    for value in 0..from.values {
        loop {
            let excess = from.degree(value).saturating_sub(height);
            if excess == 0 || !relieve_value(from, to, value, excess, height, other) {
                break;
            }
        }
    }
}

/// Origin of an alternating path: to an entry from a value, whose row leaves it; to a value from an entry, which
/// takes a row of it instead.
type Came = Option<usize>;

/// Moves up to `excess` rows of a value along a shortest alternating path. `false` if there is none.
fn relieve_value(from: &mut Counts, to: &mut Counts, value: usize, excess: usize, height: usize, other: usize) -> bool {
    let entries = from.entries;
    let mut entry_came: Vec<Came> = vec![None; entries];
    let mut value_came: Vec<Came> = vec![None; from.values];
    let mut queue = std::collections::VecDeque::from([value]);
    while let Some(v) = queue.pop_front() {
        for e in 0..entries {
            if from.get(e, v) == 0 || entry_came[e].is_some() {
                continue;
            }
            entry_came[e] = Some(v);
            let room = other.saturating_sub(to.of(e).iter().sum());
            if room > 0 {
                apply(from, to, (value, excess.min(room)), (e, None), &entry_came, &value_came);
                return true;
            }
            for w in 0..value_came.len() {
                if to.get(e, w) == 0 || value_came[w].is_some() || w == value {
                    continue;
                }
                value_came[w] = Some(e);
                let room = height.saturating_sub(from.degree(w));
                if room > 0 {
                    apply(from, to, (value, excess.min(room)), (e, Some(w)), &entry_came, &value_came);
                    return true;
                }
                queue.push_back(w);
            }
        }
    }
    false
}

/// Moves rows along the path that ends at an entry, or at its returned value.
fn apply(
    from: &mut Counts,
    to: &mut Counts,
    (start, most): (usize, usize),
    (end, given_back): (usize, Option<usize>),
    entry_came: &[Came],
    value_came: &[Came],
) {
    // Entry, value that leaves it for the other side, value that comes back to it.
    let mut path = Vec::new();
    let (mut entry, mut back) = (end, given_back);
    while let Some(value) = entry_came[entry] {
        path.push((entry, value, back));
        let Some(before) = value_came[value].filter(|_| value != start) else { break };
        (entry, back) = (before, Some(value));
    }
    let rows = path.iter().map(|&(e, out, back)| from.get(e, out).min(back.map_or(usize::MAX, |back| to.get(e, back))));
    let rows = rows.min().unwrap_or(0).min(most);
    for (e, out, back) in path {
        *from.change(e, out) -= rows;
        *to.change(e, out) += rows;
        if let Some(back) = back {
            *to.change(e, back) -= rows;
            *from.change(e, back) += rows;
        }
    }
}
