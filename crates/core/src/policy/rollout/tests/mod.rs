mod kit;
mod model;
mod rules;
mod steps;
mod stuck;
