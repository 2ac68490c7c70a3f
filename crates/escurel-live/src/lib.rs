//! Texts that several people change at once.
//!
//! Owns one text's history of changes and the union of two changes to it. Knows no pages, no files and no
//! sockets; whether a union still is a page is for others to say.

mod document;
mod gate;
mod merge;

pub use document::{Document, Point, Rewritten, TEXT, Unfit};
pub use merge::{merge, merge_lines};
