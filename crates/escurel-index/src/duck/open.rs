//! Opening the file, or putting a broken one out of the way.
//!
//! Invariant: whatever lies at the path, opening ends with a usable file or an
//! error, and what was unusable is kept under another name.

use std::fs;
use std::path::{Path, PathBuf};

use duckdb::{Config, Connection};
use escurel_store::Uid;

use super::rows::DuckState;
use super::tables::{self, SCHEMA, meta};
use crate::IndexError;

const FILE: &str = "escurel.duckdb";

pub(super) struct Opened {
    pub conn: Connection,
    pub state: DuckState,
    pub seq: u64,
    /// One past the highest page number in the file.
    pub known: u32,
}

pub(super) fn open(dir: &Path, generation: u128) -> Result<Opened, IndexError> {
    fs::create_dir_all(dir).map_err(IndexError::io("cannot create", dir))?;
    let path = dir.join(FILE);
    let wal = dir.join(format!("{FILE}.wal"));
    if !path.exists() && !wal.exists() {
        return create(&path, generation, DuckState::Created);
    }
    match try_open(&path, generation) {
        Ok(opened) => Ok(opened),
        Err(reason) => {
            let to = move_aside(&path, &wal)?;
            tracing::warn!(path = %path.display(), to = %to.display(), reason, "DuckDB index moved aside");
            create(&path, generation, DuckState::MovedAside { to, reason })
        }
    }
}

pub(super) fn forget(dir: &Path) -> Result<(), IndexError> {
    for name in [FILE.to_owned(), format!("{FILE}.wal")] {
        let path = dir.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(IndexError::io("cannot delete", &path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn config() -> duckdb::Result<Config> {
    Config::default()
        .enable_autoload_extension(false)?
        .max_memory("128MB")?
        .threads(2)?
        // Cached plans outlive the statistics that they would be shortened by.
        .with("disabled_optimizers", "statistics_propagation")?
        .with("enable_external_access", "false")
}

fn create(path: &Path, generation: u128, state: DuckState) -> Result<Opened, IndexError> {
    let build = || {
        let conn = Connection::open_with_flags(path, config()?)?;
        let tables = tables::CREATE.concat();
        conn.execute_batch(&format!("BEGIN; {tables}"))?;
        meta::set(&conn, "schema", &SCHEMA.to_string())?;
        meta::set(&conn, "generation", &generation.to_string())?;
        meta::set(&conn, "seq", "0")?;
        conn.execute_batch("COMMIT; CHECKPOINT")?;
        prepare_writer(&conn)?;
        Ok(conn)
    };
    let conn = build().map_err(IndexError::sql("cannot create the DuckDB file"))?;
    Ok(Opened {
        conn,
        state,
        seq: 0,
        known: 0,
    })
}

fn prepare_writer(conn: &Connection) -> duckdb::Result<()> {
    conn.execute_batch(
        "CREATE TEMP TABLE touched (page_no INTEGER, valid_to BIGINT);
         CREATE TEMP TABLE relinked (page_no INTEGER, ord INTEGER, version BIGINT, dst_no INTEGER);",
    )
}

/// The reason in words, if the file cannot be used.
fn try_open(path: &Path, generation: u128) -> Result<Opened, String> {
    check_header(path)?;
    let text = |e: duckdb::Error| e.to_string();
    let conn = config()
        .and_then(|c| Connection::open_with_flags(path, c))
        .map_err(text)?;
    let get = |key| {
        meta::get(&conn, key)
            .map_err(text)?
            .ok_or(format!("no `{key}` in it"))
    };
    if get("schema")? != SCHEMA.to_string() {
        return Err("tables of another version".into());
    }
    if get("generation")? != generation.to_string() {
        return Err("belongs to another store".into());
    }
    let seq = get("seq")?
        .parse()
        .map_err(|_| "no readable sequence number")?;
    let known = probe(&conn).map_err(text)?;
    prepare_writer(&conn).map_err(text)?;
    Ok(Opened {
        conn,
        state: DuckState::Intact,
        seq,
        known,
    })
}

/// DuckDB's own check of foreign files is thorough, but a few bytes of
/// anything should not even reach it.
fn check_header(path: &Path) -> Result<(), String> {
    use std::io::Read;
    let mut start = [0; 12];
    let mut file = fs::File::open(path).map_err(|e| format!("cannot be opened: {e}"))?;
    file.read_exact(&mut start).map_err(|_| "too short")?;
    if &start[8..] == b"DUCK" {
        Ok(())
    } else {
        Err("not a DuckDB file".into())
    }
}

/// Touches every table, so that a missing or torn one shows at open.
fn probe(conn: &Connection) -> duckdb::Result<u32> {
    for table in ["pages", "links", "alternates", "blocks"] {
        conn.query_row(
            &format!("SELECT count(*), max(page_no) FROM {table}"),
            [],
            |r| r.get::<_, i64>(0),
        )?;
    }
    let last: Option<(i32, String)> = {
        let mut statement =
            conn.prepare("SELECT page_no, uid FROM versions ORDER BY page_no DESC LIMIT 1")?;
        let mut rows = statement.query([])?;
        rows.next()?
            .map(|r| Ok::<_, duckdb::Error>((r.get(0)?, r.get(1)?)))
            .transpose()?
    };
    match last {
        None => Ok(0),
        Some((no, uid)) if uid.parse::<Uid>().is_ok() => Ok(no.cast_unsigned() + 1),
        Some(_) => Err(duckdb::Error::InvalidColumnName("uid".into())),
    }
}

/// Renames the file and its log; the newest damaged file is kept, older ones go.
fn move_aside(path: &Path, wal: &Path) -> Result<PathBuf, IndexError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let prefix = format!("{FILE}.damaged-");
    let number_of = |name: &str| {
        name.strip_prefix(&prefix)?
            .split('.')
            .next()?
            .parse::<u32>()
            .ok()
    };
    let mut newest = 0;
    for entry in fs::read_dir(dir)
        .map_err(IndexError::io("cannot list", dir))?
        .flatten()
    {
        if let Some(n) = entry.file_name().to_str().and_then(number_of) {
            newest = newest.max(n);
            let _ = fs::remove_file(entry.path());
        }
    }
    let to = dir.join(format!("{prefix}{}", newest + 1));
    if path.exists() {
        fs::rename(path, &to).map_err(IndexError::io("cannot move aside", path))?;
    }
    if wal.exists() {
        fs::rename(
            wal,
            to.with_extension(format!("damaged-{}.wal", newest + 1)),
        )
        .map_err(IndexError::io("cannot move aside", wal))?;
    }
    Ok(to)
}
