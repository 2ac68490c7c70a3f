//! The core over real folders, real journals and real crashes.

mod crash;
mod outside;
mod reads;
mod rebuild;
mod support;
mod tamper;
mod writes;
