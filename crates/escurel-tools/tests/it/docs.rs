//! The reference pages are what the declarations say.

use std::path::Path;

use escurel_tools::{Catalog, errors_md, reference_md};

fn check(file: &str, expect: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/reference")
        .join(file);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, expect).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expect,
        "{file} is out of date; run the tests with UPDATE_DOCS=1"
    );
}

#[test]
fn reference_of_tools() {
    check("tools.md", &reference_md(Catalog::standard()));
}

#[test]
fn reference_of_errors() {
    check("errors.md", &errors_md());
}
