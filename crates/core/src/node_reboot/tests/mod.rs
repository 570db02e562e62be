mod asking;
mod coordinator;
mod ending;
mod host_kit;
mod kit;
mod model;
mod obstacles;
mod power_cycle;
