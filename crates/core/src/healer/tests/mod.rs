mod api;
mod escalate;
mod foresee;
mod kit;
mod lease;
mod node;
