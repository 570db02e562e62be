mod deciding;
mod kit;
mod model;
mod time;
mod whom;
