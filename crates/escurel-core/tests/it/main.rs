//! The core over real folders, real journals and real crashes.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod broken;
mod chat;
mod crash;
mod erase;
mod events;
mod losses;
mod meaning;
mod moves;
mod outside;
mod pages;
mod past;
mod providers;
mod reads;
mod rebuild;
mod repair;
mod requests;
mod scenarios;
mod sessions;
mod support;
mod tamper;
mod writes;
