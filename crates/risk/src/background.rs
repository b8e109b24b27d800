//! Readers by the releases that they see, and their knowledge of people, in codes.

use crate::error::{Error, Result, thousands};

/// Reader, by the view of releases and by combinations of people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdversaryModel {
    /// The reader of the theorems, who knows each person's group. The inference needs private views.
    Group,
    /// The reader of public tables. Rows that cover the person's quasi-identifiers are equally likely to be the person's.
    Cover,
    /// The reader of [`Group`](Self::Group) who also combines people. A row is at most one person's, in all releases at once.
    Joint,
    /// The reader of [`Cover`](Self::Cover) who also combines people.
    JointCover,
}

impl AdversaryModel {
    /// Returns true if the reader knows the group of each person.
    pub fn knows_groups(self) -> bool {
        matches!(self, Self::Group | Self::Joint)
    }

    /// Returns true if the reader combines people.
    pub fn is_joint(self) -> bool {
        matches!(self, Self::Joint | Self::JointCover)
    }
}

/// A person's sensitive value, which the reader knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fact {
    pub(super) person: u32,
    /// Number of the release, or all of them.
    pub(super) release: u64,
    pub(super) value: u32,
}

/// Knowledge of people, in provisional codes.
#[derive(Default)]
pub(super) struct BackgroundKnowledge {
    pub person: Vec<u32>,
    /// Number of the release, or [`ALL`].
    pub release: Vec<u64>,
    pub quasi: Vec<u32>,
    pub sensitive: Vec<u32>,
}

/// Release number that stands for all releases.
pub(super) const ALL: u64 = u64::MAX;

impl BackgroundKnowledge {
    /// Fails when more people are in a release than it was made of.
    pub(super) fn check_people(&self, people: &[u64]) -> Result<()> {
        for (release, &most) in (1..).zip(people) {
            let there = self.release.iter().filter(|&&own| own == release || own == ALL).count();
            if there as u64 > most {
                return Err(Error::refused(format!(
                    "release {release} was made of {} people, and {} may have been in it: some have left, and the publication does not know who. Say \
                     who was in which release in a column release, row by row: original => (SELECT *, 1 AS release FROM first UNION ALL SELECT *, 2 \
                     FROM second)",
                    thousands(most as usize),
                    thousands(there)
                )));
            }
        }
        Ok(())
    }

    /// Sorts the knowledge by person and release.
    pub(super) fn in_order(self, d: usize, releases: u64) -> Result<KnownPeople> {
        let beyond = self.release.iter().filter(|&&release| release != ALL && release > releases).count();
        if beyond > 0 {
            return Err(Error::refused(format!(
                "{} rows are about releases that are not there; there are {releases}",
                thousands(beyond)
            )));
        }
        let mut order: Vec<u32> = (0..self.person.len() as u32).collect();
        let key = |row: u32| (self.person[row as usize], self.release[row as usize]);
        order.sort_unstable_by_key(|&row| key(row));
        let twice = order.windows(2).filter(|pair| key(pair[0]) == key(pair[1])).count();
        if twice > 0 {
            return Err(Error::refused(format!(
                "{} rows repeat an identifier; what is known of a person is one row (one for each release, if there is a column \
                 release)",
                thousands(twice)
            )));
        }
        let mut starts: Vec<u32> = Vec::new();
        for (place, &row) in (0..).zip(&order) {
            if place == 0 || self.person[row as usize] != self.person[order[place as usize - 1] as usize] {
                starts.push(place);
            }
        }
        starts.push(order.len() as u32);
        Ok(KnownPeople {
            starts,
            person: order.iter().map(|&row| self.person[row as usize]).collect(),
            release: order.iter().map(|&row| self.release[row as usize]).collect(),
            quasi: order.iter().flat_map(|&row| &self.quasi[row as usize * d..][..d]).copied().collect(),
            sensitive: order.iter().map(|&row| self.sensitive[row as usize]).collect(),
        })
    }
}

/// Background knowledge of people, sorted by person and release.
#[derive(Debug)]
pub(super) struct KnownPeople {
    /// First row of each person, and one more: the number of rows.
    pub starts: Vec<u32>,
    pub person: Vec<u32>,
    pub release: Vec<u64>,
    pub quasi: Vec<u32>,
    pub sensitive: Vec<u32>,
}

/// Fewest people that [`by_place`] cuts apart.
const CELL: usize = 32;

/// Orders the people in space: chunks of them lie close together in all attributes. These are halves of halves,
/// each cut across the attribute in which it is widest. Of chunks that were thin in one attribute and wide in all
/// others, every one would meet most of the boxes.
pub(super) fn by_place(known: &KnownPeople, d: usize) -> Vec<u32> {
    let mut people: Vec<u32> = (0..known.starts.len() as u32 - 1).collect();
    let place = |person: u32| {
        let row = known.starts[person as usize] as usize;
        &known.quasi[row * d..][..d]
    };
    let widths = widths(&people, &place, d);
    arrange(&mut people, &place, &widths);
    people
}

fn widths<'a>(people: &[u32], place: &impl Fn(u32) -> &'a [u32], d: usize) -> Vec<u32> {
    let mut ends = vec![[u32::MAX, 0]; d];
    for &person in people {
        for ([lo, hi], &code) in ends.iter_mut().zip(place(person)) {
            *lo = code.min(*lo);
            *hi = code.max(*hi);
        }
    }
    ends.into_iter().map(|[lo, hi]| hi.saturating_sub(lo)).collect()
}

fn arrange<'a>(people: &mut [u32], place: &(impl Fn(u32) -> &'a [u32] + Sync), whole: &[u32]) {
    let own = widths(people, place, whole.len());
    let share = |j: usize| f64::from(own[j]) / f64::from(whole[j].max(1));
    let widest = (0..whole.len()).filter(|&j| own[j] > 0).max_by(|&a, &b| share(a).total_cmp(&share(b)));
    match widest {
        Some(widest) if people.len() > CELL => {
            let middle = people.len() / 2;
            people.select_nth_unstable_by_key(middle, |&person| (place(person)[widest], person));
            let (left, right) = people.split_at_mut(middle);
            rayon::join(|| arrange(left, place, whole), || arrange(right, place, whole));
        }
        _ => people.sort_unstable_by(|&a, &b| (place(a), a).cmp(&(place(b), b))),
    }
}
