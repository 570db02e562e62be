mod deciding;
mod kit;
mod model;
mod reboots;
mod spec_change;
mod time;
mod whom;
