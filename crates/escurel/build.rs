//! Lists the demo corpus, so that the binary carries it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let home = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let corpus = home.join("../../markdown").canonicalize()?;
    println!("cargo:rerun-if-changed={}", corpus.display());
    let mut files = Vec::new();
    collect(&corpus, &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for path in &files {
        let name = path
            .strip_prefix(&corpus)
            .unwrap_or(path)
            .to_string_lossy()
            .replace('\\', "/");
        let _ = writeln!(table, "    ({name:?}, include_bytes!({path:?})),");
    }
    table.push(']');
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("demo.rs"), table)
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            println!("cargo:rerun-if-changed={}", path.display());
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "md") {
            files.push(path);
        }
    }
    Ok(())
}
