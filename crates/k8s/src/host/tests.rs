//! Objects in, hosts out; decisions in, patches out.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]
