//! Locks that a panic elsewhere does not take away from everybody else.
//!
//! A panic ends its own request or command. What the locks of this program guard is whole after every step, so whoever
//! comes next takes it as it is.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock, poisoned or not.
pub trait Lock {
    /// What is behind it.
    type Inside;

    /// Waits for the lock.
    fn locked(&self) -> MutexGuard<'_, Self::Inside>;
}

impl<T> Lock for Mutex<T> {
    type Inside = T;

    fn locked(&self) -> MutexGuard<'_, T> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
