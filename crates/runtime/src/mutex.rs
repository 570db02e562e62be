//! Locks a mutex without a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose holders leave its contents valid at each step, so that a panic of one of
/// them does not stop the others.
pub fn lock_ignoring_poison<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
