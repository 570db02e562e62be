mod api;
mod escalate;
mod foresee;
mod holding;
mod kit;
mod lease;
mod node;
