//! The protocols against a small lock of the tests; the real one is tested in `engine`.

mod answers;
mod clients;
mod curl;
mod end_to_end;
mod fleetlock;
mod fuzz;
mod kubernetes;
mod logs;
mod many;
mod rig;
mod semaphore;
mod shutdown;
mod strangers;
mod tls;
