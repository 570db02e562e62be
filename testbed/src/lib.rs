//! dogwatch-testbed
