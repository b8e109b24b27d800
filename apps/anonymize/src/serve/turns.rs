//! Turns: which statement runs next.
//!
//! Statements begin in the quick lane. One that takes longer goes on in the long lane, if there is room in it, so that the quick lane is free
//! for others. In each lane the next statement is of the reader who has computed least of late. Some places of the quick lane are kept for
//! readers who are known and have computed next to nothing: neither whoever asks much nor a crowd of newcomers takes all of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::errors::Failure;

/// Time in which half of what a reader has computed is forgotten.
const HALF: Duration = Duration::from_secs(30);
/// Seconds of computing that a running statement, or a newcomer, stands for. A reader with less may have a kept place.
const RUNNING: f64 = 0.25;
/// Seconds of computing of each statement that nobody is charged with.
const FREE: f64 = 0.1;
/// Readers that are remembered, and for how long after their last statement.
const REMEMBERED: usize = 10_000;
const MEMORY: Duration = Duration::from_secs(3600);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    Quick,
    Long,
}

/// Statements that may run at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    pub quick: usize,
    pub long: usize,
}

impl Room {
    /// Returns the room of a machine with so many processors and memory per statement.
    pub(super) fn of(processors: usize, memory: Option<usize>, statement: usize) -> Self {
        let each = (2 * processors).clamp(4, 32);
        let fits = memory.map_or(usize::MAX, |memory| memory / statement.max(1));
        let long = each.min(fits / 2).max(1);
        Self { quick: each.min(fits.saturating_sub(long)).max(1), long }
    }

    /// Returns the number of statements that may run at a time.
    pub(super) fn all(self) -> usize {
        self.quick + self.long
    }

    /// Returns the number of places that are kept in the quick lane.
    pub(super) fn kept(self) -> usize {
        self.quick / 4
    }
}

#[derive(Debug)]
struct Waiter {
    who: String,
    lane: Lane,
    number: u64,
    wake: oneshot::Sender<Turn>,
}

/// Holds what a reader has computed of late.
#[derive(Debug)]
struct Used {
    seconds: f64,
    last: Instant,
    running: usize,
}

#[derive(Debug, Default)]
struct State {
    quick: usize,
    long: usize,
    numbers: u64,
    waiting: Vec<Waiter>,
    used: HashMap<String, Used>,
}

impl State {
    /// Returns the rank of a reader at the time of one choice: ranks of one reader are equal in it.
    fn rank(&self, who: &str, now: Instant) -> f64 {
        self.used.get(who).map_or(RUNNING, |used| used.at(now) + used.running as f64 * RUNNING)
    }

    fn is_light(&self, who: &str, now: Instant) -> bool {
        self.rank(who, now) < RUNNING
    }

    /// Returns the place in the queue of the statement that may run now.
    fn next(&self, room: Room) -> Option<usize> {
        let now = Instant::now();
        let free = room.quick.saturating_sub(self.quick);
        let may_run = |waiter: &Waiter| match waiter.lane {
            Lane::Quick => free > room.kept() || free > 0 && self.is_light(&waiter.who, now),
            Lane::Long => self.long < room.long,
        };
        let ranked = self.waiting.iter().enumerate().filter(|(_, waiter)| may_run(waiter));
        let ranked = ranked.map(|(place, waiter)| (self.rank(&waiter.who, now), waiter.number, place));
        ranked.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))).map(|(_, _, place)| place)
    }
}

impl Used {
    fn at(&self, now: Instant) -> f64 {
        let since = now.saturating_duration_since(self.last).as_secs_f64();
        self.seconds * f64::exp2(-since / HALF.as_secs_f64())
    }
}

#[derive(Debug)]
pub(super) struct Turns {
    room: Room,
    state: Mutex<State>,
}

impl Turns {
    pub(super) fn new(room: Room) -> Arc<Self> {
        Arc::new(Self { room, state: Mutex::default() })
    }

    /// Waits for a turn.
    /// Fails when the server ends.
    pub(super) async fn take(self: &Arc<Self>, who: &str, lane: Lane) -> Result<Turn, Failure> {
        let (wake, woken) = oneshot::channel();
        {
            let mut state = self.state.lock();
            state.numbers += 1;
            let waiter = Waiter { who: who.to_owned(), lane, number: state.numbers, wake };
            state.waiting.push(waiter);
        }
        self.wake();
        woken.await.map_err(|_| Failure::shutdown())
    }

    /// Gives turns to statements that may run now.
    fn wake(self: &Arc<Self>) {
        loop {
            let (turn, wake) = {
                let mut state = self.state.lock();
                // Whoever has gone gives up their place in the queue.
                state.waiting.retain(|waiter| !waiter.wake.is_closed());
                let Some(place) = state.next(self.room) else { return };
                let Waiter { who, lane, wake, .. } = state.waiting.remove(place);
                let is_light = state.is_light(&who, Instant::now());
                match lane {
                    Lane::Quick => state.quick += 1,
                    Lane::Long => state.long += 1,
                }
                let used = state.used.entry(who.clone());
                used.or_insert_with(|| Used { seconds: 0.0, last: Instant::now(), running: 0 }).running += 1;
                (Turn { turns: Arc::clone(self), who, lane, is_light, computed: 0.0 }, wake)
            };
            // Outside of the lock: the turn of somebody who has gone just now ends here.
            drop(wake.send(turn));
        }
    }
}

/// The turn of one statement. It ends with this.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Arc<Turns>,
    who: String,
    lane: Lane,
    is_light: bool,
    /// Seconds of computing so far.
    computed: f64,
}

impl Turn {
    /// Returns true if the reader is known and has computed next to nothing.
    pub(super) fn is_light(&self) -> bool {
        self.is_light
    }

    pub(super) fn lane(&self) -> Lane {
        self.lane
    }

    pub(super) fn has_computed(&mut self, computed: Duration) {
        self.computed = computed.as_secs_f64();
    }

    fn charge(&self) -> f64 {
        f64::max(self.computed - FREE, 0.0)
    }

    /// Goes on in the long lane. Returns false if there is no room in it.
    pub(super) fn goes_on(&mut self) -> bool {
        {
            let mut state = self.turns.state.lock();
            if self.lane == Lane::Long || state.long >= self.turns.room.long {
                return self.lane == Lane::Long;
            }
            state.long += 1;
            state.quick -= 1;
        }
        self.lane = Lane::Long;
        self.turns.wake();
        true
    }

    /// Returns true if a reader who has computed less waits in this lane.
    pub(super) fn is_wanted(&self) -> bool {
        let state = self.turns.state.lock();
        let now = Instant::now();
        let own = state.rank(&self.who, now) + self.charge();
        let is_next = |waiter: &Waiter| {
            waiter.lane == self.lane && !waiter.wake.is_closed() && state.rank(&waiter.who, now) < own
        };
        state.waiting.iter().any(is_next)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        {
            let (charge, now) = (self.charge(), Instant::now());
            let mut state = self.turns.state.lock();
            match self.lane {
                Lane::Quick => state.quick -= 1,
                Lane::Long => state.long -= 1,
            }
            if let Some(used) = state.used.get_mut(&self.who) {
                used.seconds = used.at(now) + charge;
                used.last = now;
                used.running -= 1;
            }
            if state.used.len() > REMEMBERED {
                state.used.retain(|_, used| used.running > 0 || used.at(now) > RUNNING);
            }
            state.used.retain(|_, used| used.running > 0 || used.last.elapsed() < MEMORY);
        }
        self.turns.wake();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn there_is_room_for_somebody() {
        assert_eq!(Room::of(2, None, 1 << 28), Room { quick: 4, long: 4 });
        assert_eq!(Room::of(64, Some(1 << 40), 1 << 28), Room { quick: 32, long: 32 });
        assert_eq!(Room::of(8, Some(1 << 30), 1 << 28), Room { quick: 2, long: 2 });
        assert_eq!(Room::of(8, Some(1), 1 << 28), Room { quick: 1, long: 1 });
    }

    #[tokio::test]
    async fn nobody_takes_all_places() {
        let turns = Turns::new(Room { quick: 4, long: 1 });
        // Known from before.
        for who in ["ann", "bob"] {
            drop(turns.take(who, Lane::Quick).now_or_never().expect("free"));
        }
        let mut running = Vec::new();
        for _ in 0..3 {
            running.push(turns.take("mallory", Lane::Quick).now_or_never().expect("free").expect("a turn"));
        }
        assert!(turns.take("mallory", Lane::Quick).now_or_never().is_none());
        assert!(turns.take("newcomer", Lane::Quick).now_or_never().is_none());
        // The place that is kept.
        let ann = turns.take("ann", Lane::Quick).now_or_never().expect("free").expect("a turn");
        assert!(turns.take("bob", Lane::Quick).now_or_never().is_none());
        drop(ann);
        let bob = turns.take("bob", Lane::Quick).now_or_never().expect("free").expect("a turn");
        assert!(bob.is_light() && !running[0].is_light() && !bob.is_wanted());
        // One goes on in the long lane, a second does not.
        assert!(running[0].goes_on() && !running[1].goes_on());
        assert_eq!(running[0].lane(), Lane::Long);
        running.clear();
        drop(bob);
        let state = turns.state.lock();
        assert_eq!((state.quick, state.long), (0, 0));
    }

    #[tokio::test]
    async fn who_has_computed_least_is_next() {
        let turns = Turns::new(Room { quick: 1, long: 1 });
        drop(turns.take("ann", Lane::Quick).await);
        let mut turn = turns.take("mallory", Lane::Quick).await.expect("a turn");
        let mut waiting: Vec<_> = ["mallory", "mallory", "ann"]
            .map(|who| {
                let turns = Arc::clone(&turns);
                Box::pin(async move { (who, turns.take(who, Lane::Quick).await.expect("a turn")) })
            })
            .into_iter()
            .collect();
        for waiter in &mut waiting {
            assert!(waiter.now_or_never().is_none());
        }
        turn.has_computed(Duration::from_millis(150));
        assert!(turn.is_wanted());
        drop(turn);
        assert!(waiting[0].as_mut().now_or_never().is_none());
        let (who, turn) = waiting[2].as_mut().now_or_never().expect("next");
        assert_eq!(who, "ann");
        drop(turn);
        assert!(waiting[0].as_mut().now_or_never().is_some());
    }
}
