//! Upstream's cases, by their names. Source: `facts/fencing.md` §6.5, §6.6.
