//! Places for sessions: so many for all, and fewer for each user.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::errors::Failure;

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    of_users: HashMap<String, usize>,
}

#[derive(Debug, Clone)]
pub(super) struct Places {
    most: usize,
    most_of_user: usize,
    taken: Arc<Mutex<Taken>>,
}

impl Places {
    pub(super) fn new(most: usize, most_of_user: usize) -> Self {
        Self { most, most_of_user, taken: Arc::default() }
    }

    /// Takes a place for a session of a user.
    /// Fails when all of them are taken, or all that the user may have.
    pub(super) fn take(&self, user: &str) -> Result<Place, Failure> {
        let mut taken = self.taken.lock();
        let too_many = |message: &str, hint: &str| Err(Failure::new("53300", message).hint(hint).fatal());
        if taken.all >= self.most {
            return too_many("there are too many sessions already", "Try again later");
        }
        if taken.of_users.get(user).is_some_and(|own| *own >= self.most_of_user) {
            let hint = "End one of them, or whoever runs the server allows more with --sessions-per-user";
            return too_many("this user has too many sessions already", hint);
        }
        taken.all += 1;
        *taken.of_users.entry(user.to_owned()).or_default() += 1;
        Ok(Place { places: self.clone(), user: user.to_owned() })
    }
}

/// The place of one session, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    user: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        taken.all -= 1;
        if let Some(own) = taken.of_users.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                taken.of_users.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_all_places() {
        let places = Places::new(3, 2);
        let take = |user: &str| places.take(user);
        let ann = [take("ann").expect("free"), take("ann").expect("free")];
        assert_eq!(take("ann").expect_err("too many").code(), "53300");
        let _bob = take("bob").expect("free");
        assert!(take("eve").is_err(), "there are three");
        drop(ann);
        assert!(take("eve").is_ok());
        assert!(!places.taken.lock().of_users.contains_key("ann"));
    }
}
