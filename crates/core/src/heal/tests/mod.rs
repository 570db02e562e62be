mod api;
mod escalate;
mod kit;
mod lease;
mod node;
