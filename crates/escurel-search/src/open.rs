//! Files: opening them, telling damaged from intact, moving damaged ones aside.
//!
//! The files are derived, so the answer to any doubt is a fresh index: nothing
//! here repairs. A folder that another process writes is never touched.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tantivy::directory::error::LockError;
use tantivy::directory::{Directory, INDEX_WRITER_LOCK, MmapDirectory};
use tantivy::index::SegmentComponent;
use tantivy::{Index, IndexSettings};

use crate::api::{Generation, OpenState, SearchError};
use crate::guard;
use crate::schema::Fields;

/// Says whose index a folder holds; written before the index itself.
const GENERATION: &str = "generation.json";
const META: &str = "meta.json";
/// Up to this size the checksums of all files are read at open; larger indexes
/// are read by the housekeeping thread while they already serve.
const CHECK_AT_OPEN: u64 = 48 << 20;

pub(crate) struct Found {
    pub index: Index,
    pub seq: u64,
    pub state: OpenState,
    pub verify_later: bool,
}

#[derive(Serialize, Deserialize, PartialEq)]
struct GenerationFile {
    schema_version: u32,
    id: String,
}

impl From<Generation> for GenerationFile {
    fn from(generation: Generation) -> Self {
        let id = format!("{:032x}", generation.id);
        GenerationFile {
            schema_version: generation.schema_version,
            id,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Payload {
    seq: u64,
}

/// What a commit writes beside the segments.
pub(crate) fn payload(seq: u64) -> String {
    format!("{{\"seq\":{seq}}}")
}

pub(crate) fn open(dir: &Path, expect: Generation, fields: &Fields) -> Result<Found, SearchError> {
    if is_empty(dir)? {
        return create(dir, expect, fields, OpenState::Created);
    }
    match guard(|| existing(dir, expect, fields)) {
        Ok(found) => Ok(found),
        Err(SearchError::Damaged(reason)) => start_over(dir, expect, fields, reason),
        Err(error) => Err(error),
    }
}

/// Moves the folder aside, unless somebody writes in it, and begins a new one.
pub(crate) fn start_over(
    dir: &Path,
    expect: Generation,
    fields: &Fields,
    reason: String,
) -> Result<Found, SearchError> {
    if is_locked(dir) {
        return Err(SearchError::Locked);
    }
    let aside = move_aside(dir)?;
    create(dir, expect, fields, OpenState::MovedAside(aside, reason))
}

fn is_locked(dir: &Path) -> bool {
    let Ok(files) = MmapDirectory::open(dir) else {
        return false;
    };
    matches!(
        files.acquire_lock(&INDEX_WRITER_LOCK),
        Err(LockError::LockBusy)
    )
}

fn is_empty(dir: &Path) -> io::Result<bool> {
    match fs::read_dir(dir) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

fn create(
    dir: &Path,
    expect: Generation,
    fields: &Fields,
    state: OpenState,
) -> Result<Found, SearchError> {
    fs::create_dir_all(dir)?;
    let generation = serde_json::to_vec(&GenerationFile::from(expect)).map_err(io::Error::from)?;
    fs::write(dir.join(GENERATION), generation)?;
    let files = MmapDirectory::open(dir).map_err(tantivy::TantivyError::from)?;
    // Hits are scattered: each pays for the block that its text is in.
    let settings = IndexSettings {
        docstore_blocksize: 4096,
        ..IndexSettings::default()
    };
    let mut index = Index::create(files, fields.schema.clone(), settings)?;
    fields.register(&mut index);
    Ok(Found {
        index,
        seq: 0,
        state,
        verify_later: false,
    })
}

fn existing(dir: &Path, expect: Generation, fields: &Fields) -> Result<Found, SearchError> {
    let damaged = |what: &str| SearchError::Damaged(what.to_string());
    let generation = fs::read(dir.join(GENERATION)).map_err(|_| damaged("no generation file"))?;
    let generation: GenerationFile =
        serde_json::from_slice(&generation).map_err(|_| damaged("unreadable generation file"))?;
    if generation != expect.into() {
        return Err(damaged("the index of another version or store"));
    }
    if !dir.join(META).is_file() {
        return Err(damaged("no meta file"));
    }
    let files = MmapDirectory::open(dir).map_err(tantivy::TantivyError::from)?;
    let mut index = Index::open(files)?;
    if index.schema() != fields.schema {
        return Err(damaged("fields of another version"));
    }
    fields.register(&mut index);
    let size = check_files(dir, &index)?;
    let seq = match index.load_metas()?.payload {
        Some(text) => {
            serde_json::from_str::<Payload>(&text)
                .map_err(io::Error::from)?
                .seq
        }
        None => 0,
    };
    Ok(Found {
        index,
        seq,
        state: OpenState::Intact,
        verify_later: size > CHECK_AT_OPEN,
    })
}

/// Every file of every segment is there and, if they are small enough to read
/// now, has the checksum it was written with. The size of all.
fn check_files(dir: &Path, index: &Index) -> Result<u64, SearchError> {
    let mut size = 0;
    for path in segment_files(index)? {
        let file = fs::metadata(dir.join(&path))
            .map_err(|_| SearchError::Damaged(format!("{} is missing", path.display())))?;
        size += file.len();
    }
    if size <= CHECK_AT_OPEN
        && let Some(reason) = broken_file(dir)
    {
        return Err(SearchError::Damaged(reason));
    }
    Ok(size)
}

/// The files that the committed segments consist of.
fn segment_files(index: &Index) -> tantivy::Result<Vec<PathBuf>> {
    use SegmentComponent as C;
    let mut files = Vec::new();
    for meta in index.searchable_segment_metas()? {
        let parts = [
            C::Postings,
            C::Positions,
            C::Terms,
            C::Store,
            C::FastFields,
            C::FieldNorms,
        ];
        files.extend(parts.into_iter().map(|part| meta.relative_path(part)));
        if meta.has_deletes() {
            files.push(meta.relative_path(C::Delete));
        }
    }
    Ok(files)
}

/// A file whose content is not what was written, if any. Files that a merge has
/// removed meanwhile are not looked at. Files are mapped apart from those that
/// serve, so that what was only checked does not stay resident.
pub(crate) fn broken_file(dir: &Path) -> Option<String> {
    let check = || -> Result<Option<String>, SearchError> {
        let files = MmapDirectory::open(dir).map_err(tantivy::TantivyError::from)?;
        let index = Index::open(files)?;
        for path in segment_files(&index)? {
            match index.directory().validate_checksum(&path) {
                Ok(true) => {}
                Err(tantivy::directory::error::OpenReadError::FileDoesNotExist(_)) => {}
                Ok(false) => return Ok(Some(format!("{} has changed", path.display()))),
                Err(error) => return Ok(Some(format!("{}: {error}", path.display()))),
            }
        }
        Ok(None)
    };
    guard(check).unwrap_or_else(|error| Some(error.to_string()))
}

/// Renames the folder; only the newest such folder is kept.
fn move_aside(dir: &Path) -> io::Result<PathBuf> {
    let name = dir
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let prefix = format!("{name}.damaged-");
    let parent = dir
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut newest = 0;
    let mut older = Vec::new();
    for entry in fs::read_dir(parent)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(number) = name
            .strip_prefix(&prefix)
            .and_then(|n| n.parse::<u64>().ok())
        {
            newest = newest.max(number);
            older.push(entry.path());
        }
    }
    let aside = parent.join(format!("{prefix}{}", newest + 1));
    fs::rename(dir, &aside)?;
    for path in older {
        if let Err(error) = fs::remove_dir_all(&path) {
            tracing::warn!(path = %path.display(), %error, "an old damaged index stays");
        }
    }
    Ok(aside)
}

/// The bytes of all files in the folder.
pub(crate) fn bytes_in(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    entries
        .flatten()
        .filter_map(|entry| entry.metadata().ok())
        .map(|meta| meta.len())
        .sum()
}
