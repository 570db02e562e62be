mod asking;
mod coordinator;
mod ending;
mod kit;
mod model;
