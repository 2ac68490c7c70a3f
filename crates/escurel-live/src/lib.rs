//! Texts that several people change at once.
//!
//! Owns the union of changes to one text. Knows no pages, no files and no
//! sockets; whether a union still is a page is for others to say.

mod merge;

pub use merge::{merge, merge_lines};
