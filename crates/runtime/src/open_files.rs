//! The limit of open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// File descriptors for everything else in the process.
const OTHER_FILE_DESCRIPTORS: u64 = 1_024;

/// Makes room for this many connections: each needs a descriptor, and many hosts allow 1,024 by
/// default. Warns if the process may not have as many.
pub fn raise_open_file_limit(connections: usize) {
    let wanted = connections as u64 + OTHER_FILE_DESCRIPTORS;
    let now = getrlimit(Resource::Nofile);
    let Some(current) = now.current.filter(|current| *current < wanted) else {
        return;
    };
    let possible = now.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let more = Rlimit {
        current: Some(possible),
        maximum: now.maximum,
    };
    if setrlimit(Resource::Nofile, more).is_err() || possible < wanted {
        tracing::warn!(
            current,
            possible,
            wanted,
            "the limit of open files is too low for the maximum number of clients"
        );
    }
}
