//! dogwatch-coordinator
