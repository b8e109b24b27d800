//! Values of the engine that the compiler does not look into.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A value that can be shared, which the compiler has proved where it was made.
///
/// Statements and plans contain themselves in many ways. In a function with bounds, as all of `pgwire`'s traits have them, each future that
/// has one at hand takes rustc 1.95 some seconds, for what it proves under bounds it proves again for the next.
pub(super) struct Closed<T>(Arc<dyn Deref<Target = T> + Send + Sync>);

impl<T: Send + Sync + 'static> Closed<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Arc::new(Box::new(value)))
    }
}

impl<T> Clone for Closed<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for Closed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: fmt::Debug> fmt::Debug for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
