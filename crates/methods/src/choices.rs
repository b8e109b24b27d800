//! All choices of a method in turn, with exact weights: what a reader who knows its code computes.
//!
//! A run of a method asks for choices one after the other. It is run again and again, each time with the next sequence of answers, until
//! there are no more. The order in which it asks must follow from the answers alone, so it runs on one thread.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::lots::Lots;
use super::mondrian::Source;
use super::split::{Choose, Secret};

/// Runs on one thread: with several, which asks first can change. Tables of a few rows also take longer to be handed to others than to be released.
pub(super) fn alone<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(run)
}

/// Choices, with how many there were each time.
#[derive(Debug, Default)]
struct Choices {
    made: Vec<(usize, usize)>,
    at: usize,
    /// Choices of lists of parts of buckets, asked for by place and repeatedly.
    of_lists: HashMap<(u64, usize), usize>,
}

impl Choices {
    fn choose(&mut self, n: usize) -> usize {
        let at = self.at;
        if at == self.made.len() {
            self.made.push((0, n));
        }
        self.at += 1;
        self.made[at].0
    }

    /// Goes on to the next choices; `false` if there are no more.
    fn next(&mut self) -> bool {
        self.at = 0;
        self.of_lists.clear();
        while let Some((choice, of)) = self.made.pop() {
            if choice + 1 < of {
                self.made.push((choice + 1, of));
                return true;
            }
        }
        false
    }

    fn share(&self) -> Share {
        Share::new(1, self.made.iter().map(|&(_, of)| of as u128).product())
    }
}

#[derive(Debug, Default)]
struct All(Mutex<Choices>);

impl All {
    fn lock(&self) -> MutexGuard<'_, Choices> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Choose for All {
    fn choose(&self, part: u64, list: usize, n: usize) -> usize {
        let mut choices = self.lock();
        if let Some(&chosen) = choices.of_lists.get(&(part, list)) {
            return chosen;
        }
        let chosen = choices.choose(n);
        choices.of_lists.insert((part, list), chosen);
        chosen
    }
}

/// Answers to what a method asks for, all of them in turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Every(&'static All);

impl Every {
    /// Begins before the first answer. The first so many are always the first one that is possible: for ties that do not matter.
    pub(super) fn new(ties: usize) -> Self {
        // Secrets are plain data and live as long as anything.
        let all: &'static All = Box::leak(Box::default());
        all.lock().made.extend((0..ties).map(|_| (0, 1)));
        Self(all)
    }

    /// Returns the probabilities of all that `run` can return.
    pub(super) fn law<T: Ord>(self, mut run: impl FnMut(Self) -> T) -> BTreeMap<T, Share> {
        let mut law: BTreeMap<T, Share> = BTreeMap::new();
        loop {
            let seen = run(self);
            let mut choices = self.0.lock();
            let share = choices.share();
            let sum = law.entry(seen).or_insert(Share::NONE);
            *sum = sum.plus(share);
            if !choices.next() {
                return law;
            }
        }
    }
}

impl Source for Every {
    fn at(&self, _offset: usize, _rows: usize) -> impl Lots {
        *self
    }
}

impl Lots for Every {
    fn below(&mut self, n: usize) -> usize {
        self.0.lock().choose(n)
    }

    fn secret(&mut self) -> Secret {
        Secret::chosen(self.0)
    }
}

/// Returns all different orders of some values: the ways to give them out.
pub(super) fn orders<T: Clone + Ord>(values: &[T]) -> BTreeSet<Vec<T>> {
    if values.is_empty() {
        return BTreeSet::from([Vec::new()]);
    }
    let with_first = |first: usize| {
        let mut rest = values.to_vec();
        let value = rest.remove(first);
        orders(&rest).into_iter().map(move |order| [vec![value.clone()], order].concat())
    };
    (0..values.len()).flat_map(with_first).collect()
}

/// Worlds that explain what was published, with their weights. A world has everybody's value.
pub(super) type Weighed<V> = Vec<(Vec<V>, Share)>;

/// Returns all series of releases, one for each cohort of new people.
///
/// `release` returns the law of a release, by the values of all people until then, its number, and the releases before.
pub(super) fn series<V: Clone + Ord, S: Clone + Ord>(
    cohorts: &[Vec<V>],
    release: impl Fn(&Vec<V>, usize, &Vec<S>) -> BTreeMap<S, Share>,
) -> BTreeMap<Vec<S>, Weighed<V>> {
    let mut all: BTreeMap<Vec<S>, Weighed<V>> = BTreeMap::from([(Vec::new(), vec![(Vec::new(), Share::new(1, 1))])]);
    for (number, cohort) in cohorts.iter().enumerate() {
        let mut longer: BTreeMap<Vec<S>, Weighed<V>> = BTreeMap::new();
        for (before, worlds) in all {
            for (world, share) in worlds {
                for order in orders(cohort) {
                    let world = [world.as_slice(), &order].concat();
                    for (seen, likely) in release(&world, number, &before) {
                        let seen = [before.as_slice(), &[seen]].concat();
                        longer.entry(seen).or_default().push((world.clone(), share.times(likely)));
                    }
                }
            }
        }
        all = longer;
    }
    all
}

/// Returns the probability of an event among weighted worlds.
pub(super) fn probability<'a, V: 'a>(
    worlds: &(impl Iterator<Item = &'a (Vec<V>, Share)> + Clone),
    event: impl Fn(&[V]) -> bool,
) -> Share {
    let sum = |event: &dyn Fn(&[V]) -> bool| {
        let of = worlds.clone().filter(|(world, _)| event(world));
        of.fold(Share::NONE, |sum, (_, share)| sum.plus(*share))
    };
    sum(&event).of(sum(&|_| true))
}

/// A probability, exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share(u128, u128);

impl Share {
    pub(super) const NONE: Self = Self(0, 1);

    pub(super) fn new(above: u128, below: u128) -> Self {
        fn divisor(a: u128, b: u128) -> u128 {
            if b == 0 { a } else { divisor(b, a % b) }
        }
        let common = divisor(above, below);
        Self(above / common, below / common)
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self::new(self.0 * other.1 + other.0 * self.1, self.1 * other.1)
    }

    pub(super) fn times(self, other: Self) -> Self {
        let (a, b) = (Self::new(self.0, other.1), Self::new(other.0, self.1));
        Self(a.0 * b.0, a.1 * b.1)
    }

    /// Returns the share that this is of another one.
    pub(super) fn of(self, whole: Self) -> Self {
        self.times(Self(whole.1, whole.0))
    }

    pub(super) fn is_more_than(self, other: Self) -> bool {
        self.0 * other.1 > other.0 * self.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_orders_are_as_likely() {
        let law = Every::new(0).law(|mut every| {
            let mut order = [1, 2, 3];
            every.shuffle(&mut order);
            let mut two = order;
            [order.to_vec(), every.choose(&mut two, 1).to_vec()]
        });
        assert_eq!(law.len(), 18);
        assert!(law.values().all(|share| *share == Share::new(1, 18)));
        let sum = law.into_values().fold(Share::NONE, Share::plus);
        assert_eq!(sum, Share::new(7, 7));
        assert!(sum.is_more_than(Share::new(3, 4)) && Share::new(1, 2).of(Share::new(3, 4)) == Share::new(2, 3));
    }

    #[test]
    fn a_list_is_asked_for_once() {
        let law = Every::new(0).law(|mut every| {
            let [first, second] = every.secret().halves();
            [first.of_list(0, 2), first.of_list(0, 2), first.of_list(1, 2), second.of_list(0, 2)]
        });
        assert_eq!(law.len(), 8);
        assert!(law.keys().all(|seen| seen[0] == seen[1]));
    }
}
