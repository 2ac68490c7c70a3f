//! Fills an empty tenant once.
//!
//! Copies regular files only. Invariant: a tenant that has pages or a history
//! is never touched, nor is a folder of notes made a data directory, and a copy
//! that was interrupted leaves no tenant behind.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use escurel_core::{Code, Refusal};

/// Copies the markdown of `from` into the tenant, if it has none yet.
pub fn seed(from: &Path, data_dir: &Path, tenant: &str) -> Result<bool, Refusal> {
    if tenant.is_empty() || tenant.starts_with('.') || tenant.contains(['/', '\\', '\0']) {
        return Err(Refusal::new(
            Code::InvalidArgument,
            "The tenant's name cannot be a folder.",
        )
        .at("tenant"));
    }
    if let Err(error) = fs::read_dir(from) {
        let message = format!("{} cannot be copied from: {error}.", from.display());
        return Err(Refusal::new(Code::InvalidArgument, message).at("seed_dir"));
    }
    if !data_dir.join("tenants").is_dir()
        && let Some(page) = first_page(data_dir)
    {
        let message = format!(
            "Seeding fills an empty tenant of a data directory, and {} is a folder of notes ({}). Serve it without a seed, \
             or name another folder.",
            data_dir.display(),
            page.display()
        );
        return Err(Refusal::new(Code::InvalidArgument, message).at("seed_dir"));
    }
    let home = data_dir.join("tenants").join(tenant);
    let markdown = home.join("markdown");
    if home.join("journal").exists() || holds_something(&markdown) {
        return Ok(false);
    }
    copy_once(from, &home, &markdown)
        .map(|()| true)
        .map_err(|error| {
            Refusal::new(
                Code::Io,
                format!(
                    "Filling the tenant from {} failed: {error}.",
                    from.display()
                ),
            )
            .at("seed_dir")
        })
}

/// A page anywhere in the folder.
fn first_page(folder: &Path) -> Option<PathBuf> {
    let mut later = Vec::new();
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if kind.is_dir() {
            later.push(path);
        } else if path.extension().is_some_and(|end| end == "md") {
            return Some(path);
        }
    }
    later.iter().find_map(|folder| first_page(folder))
}

fn holds_something(dir: &Path) -> bool {
    fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some())
}

fn copy_once(from: &Path, home: &Path, markdown: &Path) -> io::Result<()> {
    let partial = home.join(format!(".seed-{}", std::process::id()));
    fs::create_dir_all(&partial)?;
    // A seed that is itself a tenant has its pages one level down.
    let inner = from.join("markdown");
    let copied = copy_tree(if inner.is_dir() { &inner } else { from }, &partial);
    let moved = copied.and_then(|()| {
        let _ = fs::remove_dir(markdown);
        fs::rename(&partial, markdown)
    });
    if moved.is_err() {
        let _ = fs::remove_dir_all(&partial);
    }
    moved
}

fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, name) = (entry.file_type()?, entry.file_name());
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let target = to.join(name);
        if kind.is_dir() {
            fs::create_dir(&target)?;
            copy_tree(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_once() {
        let dir = tempfile::tempdir().unwrap();
        let (from, data) = (dir.path().join("from"), dir.path().join("data"));
        fs::create_dir_all(from.join("a/.git")).unwrap();
        fs::write(from.join("a/x.md"), "x").unwrap();
        std::os::unix::fs::symlink("/etc", from.join("link")).unwrap();
        assert!(seed(&from, &data, "t").unwrap());
        let markdown = data.join("tenants/t/markdown");
        assert!(
            markdown.join("a/x.md").is_file()
                && !markdown.join("link").exists()
                && !markdown.join("a/.git").exists()
        );
        fs::remove_file(markdown.join("a/x.md")).unwrap();
        assert!(!seed(&from, &data, "t").unwrap());
        assert!(seed(&from, &data, "../t").is_err());
    }

    #[test]
    fn refuses_before_anything_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let (from, data) = (dir.path().join("from"), dir.path().join("data"));
        let refused = seed(&from, &data, "t").unwrap_err();
        assert_eq!(refused.location.as_deref(), Some("seed_dir"), "{refused}");
        assert!(!data.exists());
        let notes = dir.path().join("notes");
        fs::create_dir_all(notes.join("deep")).unwrap();
        fs::create_dir_all(&from).unwrap();
        fs::write(notes.join("deep/x.md"), "x").unwrap();
        let refused = seed(&from, &notes, "t").unwrap_err().to_string();
        assert!(refused.contains("folder of notes"), "{refused}");
        assert!(!notes.join("tenants").exists());
    }
}
