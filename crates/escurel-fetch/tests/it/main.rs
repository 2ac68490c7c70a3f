//! Models from real HTTP servers and from folders.

mod client;
mod folders;
mod index;
mod support;
mod wheel;
