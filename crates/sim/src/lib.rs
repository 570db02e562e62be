//! dogwatch-sim
