//! dogwatch-api
