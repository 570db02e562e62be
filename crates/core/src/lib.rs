//! dogwatch-core
