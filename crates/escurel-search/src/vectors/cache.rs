//! Vectors by the text they stand for, in one file that only grows: a text is
//! embedded once, whatever happens to the index.
//!
//! The file may be deleted at any time; it costs the embedding again. A torn
//! end, as a crash leaves it, is cut; a damaged row is forgotten.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use hashbrown::HashMap;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::quantise::Code;

/// Names a text for one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextKey(pub u128);

impl TextKey {
    /// Half of the SHA-256: a page must not be able to take another text's vector.
    pub fn of(text: &str) -> TextKey {
        let hash: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let half = hash.first_chunk::<16>().copied().unwrap_or_default();
        TextKey(u128::from_le_bytes(half))
    }
}

#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error("embedding_cache: {0} cannot be used: {1}")]
    Io(PathBuf, std::io::Error),
}

/// The cache of one model.
pub struct Cache {
    path: PathBuf,
    dimensions: usize,
    inner: Mutex<Inner>,
}

struct Inner {
    file: File,
    rows: HashMap<TextKey, u32>,
    len: u32,
}

const MAGIC: &[u8; 8] = b"escvec01";
const HEADER: usize = 16;
/// Key, checksum and scale before the bytes of a row.
const ROW_HEAD: usize = 16 + 4 + 4;

impl Cache {
    /// Opens or begins the file of `model` in `dir`.
    ///
    /// # Errors
    /// [`CacheError`] when the folder cannot be written.
    pub fn open(dir: &Path, model: &str, dimensions: usize) -> Result<Cache, CacheError> {
        let path = dir.join(format!("{:032x}.vectors", TextKey::of(model).0));
        let inner =
            Inner::open(dir, &path, dimensions).map_err(|e| CacheError::Io(path.clone(), e))?;
        Ok(Cache {
            path,
            dimensions,
            inner: Mutex::new(inner),
        })
    }

    /// Texts that have a vector.
    pub fn len(&self) -> usize {
        self.inner.lock().rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row of a text's vector.
    pub fn row(&self, key: TextKey) -> Option<u32> {
        self.inner.lock().rows.get(&key).copied()
    }

    /// `None`: no such row, or a damaged one, which is forgotten.
    pub fn code(&self, row: u32) -> Option<Code> {
        let mut inner = self.inner.lock();
        let mut bytes = vec![0; ROW_HEAD + self.dimensions];
        if row >= inner.len || inner.read_row(row, &mut bytes).is_err() {
            return None;
        }
        let read = read(&bytes);
        if read.is_none() {
            inner.rows.retain(|_, at| *at != row);
        }
        read.map(|(_, code)| code)
    }

    /// Keeps vectors and answers their rows. What cannot be written is a row all
    /// the same in this process's memory only, so nothing fails but the sparing.
    pub fn put(&self, entries: &[(TextKey, Code)]) -> Result<Vec<u32>, CacheError> {
        let mut inner = self.inner.lock();
        let mut rows = Vec::with_capacity(entries.len());
        let (mut bytes, mut fresh) = (Vec::new(), Vec::new());
        for (key, code) in entries {
            let known = inner.rows.get(key).copied();
            let row = known.unwrap_or(inner.len + fresh.len() as u32);
            if known.is_none() && !fresh.iter().any(|(other, _)| other == key) {
                write(&mut bytes, *key, code);
                fresh.push((*key, row));
                rows.push(row);
            } else {
                let again = fresh.iter().find(|(other, _)| other == key);
                rows.push(again.map_or(row, |(_, row)| *row));
            }
        }
        let at = HEADER as u64 + u64::from(inner.len) * self.row_bytes();
        inner
            .write_at(at, &bytes)
            .map_err(|e| CacheError::Io(self.path.clone(), e))?;
        inner.len += fresh.len() as u32;
        inner.rows.extend(fresh);
        Ok(rows)
    }

    /// Leaves nothing of these texts' vectors in the file.
    ///
    /// # Errors
    /// [`CacheError`] when it cannot be written.
    pub fn forget(&self, keys: &[TextKey]) -> Result<(), CacheError> {
        let mut inner = self.inner.lock();
        let blank = vec![0; ROW_HEAD + self.dimensions];
        for key in keys {
            let Some(row) = inner.rows.remove(key) else {
                continue;
            };
            // A row of zeros has a wrong checksum, so it is nobody's.
            let at = HEADER as u64 + u64::from(row) * self.row_bytes();
            inner
                .write_at(at, &blank)
                .map_err(|e| CacheError::Io(self.path.clone(), e))?;
        }
        let synced = inner.file.sync_data();
        synced.map_err(|e| CacheError::Io(self.path.clone(), e))
    }

    fn row_bytes(&self) -> u64 {
        (ROW_HEAD + self.dimensions) as u64
    }
}

impl Inner {
    fn open(dir: &Path, path: &Path, dimensions: usize) -> std::io::Result<Inner> {
        std::fs::create_dir_all(dir)?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let mut head = [0; HEADER];
        let read = file.read(&mut head)?;
        if read < HEADER || head != header(dimensions) {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&header(dimensions))?;
        }
        let mut inner = Inner {
            file,
            rows: HashMap::new(),
            len: 0,
        };
        inner.load(dimensions)?;
        Ok(inner)
    }

    fn load(&mut self, dimensions: usize) -> std::io::Result<()> {
        let row_bytes = ROW_HEAD + dimensions;
        self.file.seek(SeekFrom::Start(HEADER as u64))?;
        let mut reader = BufReader::with_capacity(1 << 20, &self.file);
        let mut bytes = vec![0; row_bytes];
        let (mut row, mut last_whole) = (0u32, 0u32);
        while reader.read_exact(&mut bytes).is_ok() {
            if let Some((key, _)) = read(&bytes) {
                self.rows.insert(key, row);
                last_whole = row + 1;
            }
            row += 1;
        }
        self.len = last_whole;
        let end = HEADER as u64 + u64::from(last_whole) * row_bytes as u64;
        self.file.set_len(end)
    }

    fn read_row(&mut self, row: u32, bytes: &mut [u8]) -> std::io::Result<()> {
        let at = HEADER as u64 + u64::from(row) * bytes.len() as u64;
        self.file.seek(SeekFrom::Start(at))?;
        self.file.read_exact(bytes)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(bytes)
    }
}

fn header(dimensions: usize) -> [u8; HEADER] {
    let mut head = [0; HEADER];
    head[..8].copy_from_slice(MAGIC);
    head[8..].copy_from_slice(&(dimensions as u64).to_le_bytes());
    head
}

fn write(out: &mut Vec<u8>, key: TextKey, code: &Code) {
    let from = out.len();
    out.extend_from_slice(&key.0.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&code.scale.to_le_bytes());
    out.extend(code.bytes.iter().map(|byte| byte.cast_unsigned()));
    let sum = checksum(&out[from..]).to_le_bytes();
    out[from + 16..from + 20].copy_from_slice(&sum);
}

fn read(row: &[u8]) -> Option<(TextKey, Code)> {
    let (head, bytes) = row.split_at_checked(ROW_HEAD)?;
    let sum = u32::from_le_bytes(head.get(16..20)?.try_into().ok()?);
    if sum != checksum(row) {
        return None;
    }
    let key = TextKey(u128::from_le_bytes(head.get(..16)?.try_into().ok()?));
    let scale = f32::from_le_bytes(head.get(20..24)?.try_into().ok()?);
    let bytes = bytes.iter().map(|byte| byte.cast_signed()).collect();
    Some((key, Code { bytes, scale }))
}

/// Of everything in a row but the place of the sum itself.
fn checksum(row: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&row[..16]);
    hasher.update(&row[20..]);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(seed: i8) -> Code {
        Code {
            bytes: (0..8).map(|i| i * seed).collect(),
            scale: 0.5,
        }
    }

    fn open(dir: &Path) -> Cache {
        Cache::open(dir, "model", 8).unwrap()
    }

    #[test]
    fn what_is_forgotten_is_not_in_the_file_any_more() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(dir.path(), "m", 8).unwrap();
        let keys = [TextKey(1), TextKey(2), TextKey(3)];
        let entries: Vec<(TextKey, Code)> = keys.iter().map(|key| (*key, code(7))).collect();
        cache.put(&entries).unwrap();
        cache.forget(&[TextKey(2), TextKey(9)]).unwrap();
        assert_eq!(cache.row(TextKey(2)), None);
        let again = Cache::open(dir.path(), "m", 8).unwrap();
        assert_eq!((again.len(), again.row(TextKey(2))), (2, None));
        assert_eq!(again.code(again.row(TextKey(3)).unwrap()), Some(code(7)));
    }

    #[test]
    fn what_was_put_is_found_again_also_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (TextKey::of("a"), TextKey::of("b"));
        let cache = open(dir.path());
        assert_eq!(
            cache
                .put(&[(a, code(1)), (b, code(2)), (a, code(1))])
                .unwrap(),
            [0, 1, 0]
        );
        assert_eq!(cache.put(&[(b, code(2))]).unwrap(), [1]);
        drop(cache);
        let cache = open(dir.path());
        assert_eq!(cache.len(), 2);
        let row = cache.row(b).unwrap();
        assert_eq!(cache.code(row), Some(code(2)));
        assert_eq!(cache.row(TextKey::of("c")), None);
    }

    #[test]
    fn a_torn_end_is_cut_and_a_damaged_row_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let keys: Vec<TextKey> = ["a", "b", "c"].map(TextKey::of).to_vec();
        let cache = open(dir.path());
        let entries: Vec<_> = keys.iter().map(|key| (*key, code(3))).collect();
        cache.put(&entries).unwrap();
        let path = cache.path.clone();
        drop(cache);
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let cache = open(dir.path());
            assert_eq!(
                cache.len(),
                cut.saturating_sub(HEADER) / (ROW_HEAD + 8),
                "{cut}"
            );
            cache.put(&entries).unwrap();
            let found: Vec<_> = keys
                .iter()
                .map(|k| cache.code(cache.row(*k).unwrap()))
                .collect();
            assert_eq!(found, vec![Some(code(3)); 3], "{cut}");
        }
        let mut damaged = whole.clone();
        damaged[HEADER + ROW_HEAD + 8 + 30] ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        let cache = open(dir.path());
        assert_eq!((cache.row(keys[1]), cache.len()), (None, 2));
        assert_eq!(cache.code(cache.row(keys[2]).unwrap()), Some(code(3)));
    }

    #[test]
    fn another_model_has_another_file_and_other_dimensions_begin_anew() {
        let dir = tempfile::tempdir().unwrap();
        open(dir.path())
            .put(&[(TextKey::of("a"), code(1))])
            .unwrap();
        assert!(Cache::open(dir.path(), "other", 8).unwrap().is_empty());
        assert!(Cache::open(dir.path(), "model", 16).unwrap().is_empty());
    }
}
