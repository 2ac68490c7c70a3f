//! The reference pages for people.
use crate::catalog::Catalog;
pub fn reference_md(_catalog: &Catalog) -> String {
    String::new()
}
pub fn errors_md() -> String {
    String::new()
}
