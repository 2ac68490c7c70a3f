//! The tools from outside: the table of declarations, arguments, answers, docs.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod answers;
mod calls;
mod conform;
mod docs;
mod events;
mod once;
mod surface;
mod teaching;

/// Every file beside this one is a module of it.
#[test]
fn every_file_is_listed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|f| f.unwrap().file_name().into_string().unwrap());
    let modules = files
        .filter_map(|f| f.strip_suffix(".rs").map(str::to_owned))
        .filter(|m| m != "main");
    let this = include_str!("main.rs");
    for module in modules {
        assert!(
            this.contains(&format!("mod {module};")),
            "{module} is not listed"
        );
    }
}
