//! What becomes of the derived files between two processes.

use std::fs;
use std::io;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Kept,
    Deleted,
    /// One part is as it was at an earlier time, or all are.
    Stale(Part),
    Truncated(Part),
    Removed(Part),
    Garbled(Part),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Directory,
    Duck,
    Text,
    All,
}

pub(crate) const PARTS: &[Part] = &[Part::Directory, Part::Duck, Part::Text, Part::All];

impl Part {
    fn is_in(self, name: &str) -> bool {
        match self {
            Part::Directory => name == "directory.bin",
            Part::Duck => name.starts_with("escurel.duckdb"),
            Part::Text => name == "text",
            Part::All => true,
        }
    }
}

impl Fate {
    /// `earlier`: a copy of the folder from a former process, if there is one.
    pub fn befall(self, folder: &Path, earlier: Option<&Path>) -> io::Result<()> {
        match self {
            Fate::Kept => Ok(()),
            Fate::Deleted => fs::remove_dir_all(folder),
            Fate::Stale(part) => match earlier {
                Some(earlier) => {
                    each(folder, part, &mut remove)?;
                    copy(earlier, folder, part)
                }
                None => Ok(()),
            },
            Fate::Removed(part) => each(folder, part, &mut remove),
            Fate::Truncated(part) => each_file(folder, part, &mut |file| {
                let len = fs::metadata(file)?.len();
                fs::OpenOptions::new()
                    .write(true)
                    .open(file)?
                    .set_len(len / 2)
            }),
            Fate::Garbled(part) => each_file(folder, part, &mut |file| {
                let bytes = fs::read(file)?;
                let garble = |(n, byte): (usize, &u8)| byte ^ u8::from(n % 61 == 17);
                fs::write(
                    file,
                    bytes.iter().enumerate().map(garble).collect::<Vec<_>>(),
                )
            }),
        }
    }
}

/// Copies what is there; files that vanish meanwhile are not missed.
pub(crate) fn copy(from: &Path, to: &Path, part: Part) -> io::Result<()> {
    fs::create_dir_all(to)?;
    each(from, part, &mut |item| {
        let target = to.join(item.file_name().unwrap_or_default());
        if item.is_dir() {
            return copy(item, &target, Part::All);
        }
        match fs::copy(item, target) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    })
}

fn each(folder: &Path, part: Part, act: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    for item in fs::read_dir(folder)? {
        let item = item?;
        if part.is_in(&item.file_name().to_string_lossy()) {
            act(&item.path())?;
        }
    }
    Ok(())
}

fn each_file(
    folder: &Path,
    part: Part,
    act: &mut dyn FnMut(&Path) -> io::Result<()>,
) -> io::Result<()> {
    each(folder, part, &mut |item| match item.is_dir() {
        true => each_file(item, Part::All, act),
        false => act(item),
    })
}

fn remove(item: &Path) -> io::Result<()> {
    match item.is_dir() {
        true => fs::remove_dir_all(item),
        false => fs::remove_file(item),
    }
}
