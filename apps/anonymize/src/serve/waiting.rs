//! Connections that are not sessions yet: few at a time, and of too many some give way.
//!
//! Somebody who opens connections must not keep others out. A program that begins a session speaks as soon as it is connected, however far
//! away it is, so of connections that say nothing the one that has been silent longest gives way. None of them takes the place of a connection that
//! has spoken. Of those that have spoken and do not come to an end, one gives way that is drawn among those of the address with most of them: a
//! handshake of four messages survives hundreds of others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::AbortHandle;

/// Connections that may wait without a word, and those that have spoken.
const MOST: usize = 256;

#[derive(Debug)]
struct Waiter {
    number: u64,
    address: IpAddr,
    has_spoken: bool,
    task: AbortHandle,
}

#[derive(Debug, Default)]
struct All {
    next: u64,
    /// Oldest first.
    waiting: Vec<Waiter>,
}

impl All {
    fn of(&self, has_spoken: bool) -> impl Iterator<Item = (usize, &Waiter)> {
        self.waiting.iter().enumerate().filter(move |(_, waiter)| waiter.has_spoken == has_spoken)
    }

    fn close(&mut self, place: Option<usize>) {
        if let Some(place) = place {
            self.waiting.remove(place).task.abort();
        }
    }

    /// Returns the connection that has spoken and that a lot falls on.
    fn drawn(&self, lot: usize) -> Option<usize> {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for (_, waiter) in self.of(true) {
            *counts.entry(waiter.address).or_default() += 1;
        }
        let most = counts.values().copied().max()?;
        let places = self.of(true).filter(|(_, waiter)| counts.get(&waiter.address) == Some(&most));
        places.map(|(place, _)| place).nth(lot % most)
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Waiting(Arc<Mutex<All>>);

impl Waiting {
    /// Starts a connection, which waits for as long as it has its turn.
    pub(super) fn start(&self, address: IpAddr, connection: impl FnOnce(Turn) -> AbortHandle) {
        // Held until it is on the list: turns end by the list.
        let mut all = self.0.lock();
        let number = all.next;
        all.next += 1;
        if all.of(false).count() >= MOST {
            let oldest = all.of(false).next().map(|(place, _)| place);
            all.close(oldest);
        }
        let task = connection(Turn { waiting: self.clone(), number });
        all.waiting.push(Waiter { number, address, has_spoken: false, task });
    }
}

/// Turn of one connection. It ends with this, or when a session begins.
#[derive(Debug)]
pub(super) struct Turn {
    waiting: Waiting,
    number: u64,
}

impl Turn {
    pub(super) fn speaks(&self) {
        let mut all = self.waiting.0.lock();
        if all.of(true).count() >= MOST {
            let drawn = all.drawn(rand::random::<u32>() as usize);
            all.close(drawn);
        }
        if let Some(waiter) = all.waiting.iter_mut().find(|waiter| waiter.number == self.number) {
            waiter.has_spoken = true;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.waiting.0.lock().waiting.retain(|waiter| waiter.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::task::JoinSet;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    /// Returns the connections that do nothing, which say something first or not. Returns the turns that the tasks would hold.
    fn open(waiting: &Waiting, tasks: &mut JoinSet<u64>, address: IpAddr, speaks: bool) -> Turn {
        let mut turn = None;
        waiting.start(address, |own| {
            turn = Some(own);
            tasks.spawn(std::future::pending())
        });
        let turn = turn.expect("started");
        if speaks {
            turn.speaks();
        }
        turn
    }

    fn numbers(waiting: &Waiting, has_spoken: bool) -> Vec<u64> {
        waiting.0.lock().of(has_spoken).map(|(_, waiter)| waiter.number).collect()
    }

    #[tokio::test]
    async fn the_oldest_of_those_that_say_nothing_gives_way() {
        let (waiting, mut tasks) = (Waiting::default(), JoinSet::new());
        let spoken = open(&waiting, &mut tasks, HERE, true);
        let session = open(&waiting, &mut tasks, HERE, false);
        drop(session);
        let turns: Vec<Turn> = (0..MOST + 10).map(|_| open(&waiting, &mut tasks, HERE, false)).collect();
        assert_eq!(numbers(&waiting, true), [spoken.number]);
        let silent = numbers(&waiting, false);
        assert_eq!((silent.len(), silent[0]), (MOST, turns[10].number));
        for _ in 0..10 {
            let ended = tasks.join_next().await.expect("ended");
            assert!(ended.is_err_and(|error| error.is_cancelled()));
        }
        assert_eq!(tasks.len(), MOST + 2);
    }

    #[tokio::test]
    async fn others_have_their_place_beside_an_address_with_many() {
        let (waiting, mut tasks) = (Waiting::default(), JoinSet::new());
        let other = open(&waiting, &mut tasks, ELSEWHERE, true);
        let turns: Vec<Turn> = (0..4 * MOST).map(|_| open(&waiting, &mut tasks, HERE, true)).collect();
        let spoken = numbers(&waiting, true);
        assert_eq!((spoken.len(), spoken[0]), (MOST, other.number));
        // Those that gave way were drawn: some that are old are here still.
        assert!(spoken.iter().skip(1).any(|number| *number < turns[3 * MOST].number));
        drop(turns);
        assert_eq!(numbers(&waiting, true), [other.number]);
    }
}
