mod asking;
mod coordinator;
mod ending;
mod host_kit;
mod kit;
mod model;
mod power_cycle;
