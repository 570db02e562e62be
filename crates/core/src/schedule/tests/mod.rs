mod deciding;
mod kit;
mod model;
mod reboots;
mod time;
mod whom;
