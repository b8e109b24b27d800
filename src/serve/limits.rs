//! Memory of one session's statements, out of what all of them share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::{Result, resources_datafusion_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};

/// A pool with a limit of its own inside of another.
#[derive(Debug)]
pub(super) struct SessionPool {
    shared: Arc<dyn MemoryPool>,
    limit: usize,
    used: AtomicUsize,
}

impl SessionPool {
    pub(super) fn new(shared: Arc<dyn MemoryPool>, limit: usize) -> Self {
        Self { shared, limit, used: AtomicUsize::new(0) }
    }
}

impl fmt::Display for SessionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({} of {} bytes)", self.name(), self.reserved(), self.limit)
    }
}

impl MemoryPool for SessionPool {
    fn name(&self) -> &str {
        "session"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.shared.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.shared.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.used.fetch_add(additional, Ordering::Relaxed);
        self.shared.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.used.fetch_sub(shrink, Ordering::Relaxed);
        self.shared.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let fits = |used: usize| used.checked_add(additional).filter(|&used| used <= self.limit);
        if self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err() {
            return Err(resources_datafusion_err!("a session's statements may use {} bytes", self.limit));
        }
        let grown = self.shared.try_grow(reservation, additional);
        if grown.is_err() {
            self.used.fetch_sub(additional, Ordering::Relaxed);
        }
        grown
    }

    fn reserved(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::GreedyMemoryPool;

    use super::*;

    #[test]
    fn both_limits_hold() {
        let shared: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(100));
        let pool = |limit| -> Arc<dyn MemoryPool> { Arc::new(SessionPool::new(Arc::clone(&shared), limit)) };
        let (one, other) = (pool(60), pool(60));
        let first = MemoryConsumer::new("one").register(&one);
        let second = MemoryConsumer::new("other").register(&other);
        assert!(first.try_grow(61).is_err());
        first.try_grow(60).expect("fits");
        assert!(second.try_grow(41).is_err(), "more than there is");
        assert_eq!(other.reserved(), 0);
        second.try_grow(40).expect("fits");
        drop(first);
        assert_eq!((one.reserved(), shared.reserved()), (0, 40));
    }
}
