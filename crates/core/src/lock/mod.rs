//! The rules of the cluster-wide reboot lock: one Lease per slot, taken by server-side apply.
//!
//! Source: specification §2.2. The API server refuses the second holder; what is decided here is
//! who asks when, who gives back, and on which evidence a lock is broken.

mod types;

pub use types::{
    Bid, Budget, Count, HolderId, HolderNode, LeaseSeen, LockRecord, NameTooLong, Unavailable,
    Waiter,
};

/// The first 32 hexadecimal digits of the text's SHA-256, for names that would be too long.
pub(crate) fn digest(text: &str) -> String {
    use sha2::Digest as _;
    let hash = sha2::Sha256::digest(text.as_bytes());
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
