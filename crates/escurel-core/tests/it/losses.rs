//! What killed processes, lost power and strangers at the same file leave behind.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use escurel_access::OpenPolicy;
use escurel_core::{Chore, Kb, Put, Refusal, Written};
use escurel_md::Layout;
use escurel_store::{Env, Failpoints, Loss, ManualClock, MemStore, SeededIds, Store};

use crate::support::*;

const POWER: Loss = Loss::Power { torn: 0 };

/// A store in memory and an index on disk, over which processes come and go.
struct Machine {
    clock: Arc<ManualClock>,
    ids: Arc<SeededIds>,
    store: Arc<MemStore>,
    index: tempfile::TempDir,
}

impl Machine {
    fn new() -> Machine {
        let clock = Arc::new(ManualClock::new(1_700_000_000_000_000));
        let ids = Arc::new(SeededIds::new(7));
        let env = Env {
            clock: clock.clone(),
            ids: ids.clone(),
            ..Env::system()
        };
        Machine {
            clock,
            ids,
            store: Arc::new(MemStore::new(env)),
            index: tempfile::tempdir().unwrap(),
        }
    }

    fn env(&self) -> Env {
        Env {
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            ..Env::system()
        }
    }

    fn open(&self) -> Arc<Kb> {
        open_at(&self.store, self.index.path())
    }

    /// The process ends, and the index with it; the next one finds what the loss leaves.
    fn lose(&mut self, loss: Loss) -> Arc<Kb> {
        self.lose_with(loss, self.env())
    }

    fn lose_with(&mut self, loss: Loss, env: Env) -> Arc<Kb> {
        self.store = Arc::new(self.store.after(loss, env));
        self.index = tempfile::tempdir().unwrap();
        self.open()
    }

    fn settle(&self, kb: &Kb) {
        kb.do_chore(&Chore::Scan).unwrap();
        self.clock.advance(3_000_000);
        kb.do_chore(&Chore::Settle).unwrap();
    }

    fn file(&self, path: &str) -> Option<String> {
        let (bytes, _) = self.store.read(path).unwrap()?;
        Some(String::from_utf8(bytes).unwrap())
    }
}

fn open_at(store: &Arc<MemStore>, index: &Path) -> Arc<Kb> {
    Kb::stepped(store.clone(), Layout::Vault, Arc::new(OpenPolicy), index).unwrap()
}

fn put(kb: &Kb, path: &str, content: &str) -> Result<Written, Refusal> {
    let put = Put {
        path,
        content,
        base_version: None,
    };
    kb.put_page(&me(), &put)
}

#[test]
fn a_page_that_was_made_and_rewritten_outlives_lost_power() {
    let mut machine = Machine::new();
    let kb = machine.open();
    put(&kb, "a.md", "one\n").unwrap();
    put(&kb, "a.md", "two\n").unwrap();
    let kb = machine.lose(POWER);
    machine.settle(&kb);
    assert_eq!(machine.file("a.md").as_deref(), Some("two\n"));
    verify_clean(&kb);
}

#[test]
fn a_file_whose_bytes_the_power_took_is_written_again() {
    let mut machine = Machine::new();
    let kb = machine.open();
    let long = "a line of many\n".repeat(100);
    put(&kb, "a.md", "one\n").unwrap();
    put(&kb, "long.md", &long).unwrap();
    let kb = machine.lose(Loss::Power { torn: 600 });
    assert_eq!(machine.file("a.md").as_deref(), Some("one\n"));
    assert_eq!(machine.file("long.md"), Some(long));
    assert_eq!(page(&kb, "a.md").unwrap().version, 1);
    verify_clean(&kb);
}

#[test]
fn a_killed_process_and_then_lost_power_lose_nothing_acknowledged() {
    let mut machine = Machine::new();
    let kb = machine.open();
    put(&kb, "a.md", "one\n").unwrap();
    kb.do_chore(&Chore::Fold).unwrap();
    put(&kb, "a.md", "two\n").unwrap();
    let kb = machine.lose(Loss::Kill);
    // The new process marks the text as durable, which somebody else had written.
    kb.do_chore(&Chore::Fold).unwrap();
    let kb = machine.lose(POWER);
    assert_eq!(text_of(&kb, "a.md").as_deref(), Some("two\n"));
    assert_eq!(page(&kb, "a.md").unwrap().version, 2);
}

#[test]
fn a_write_brings_back_a_file_that_was_deleted_unseen_and_keeps_it() {
    let mut machine = Machine::new();
    let kb = machine.open();
    put(&kb, "a.md", "one\n").unwrap();
    kb.do_chore(&Chore::Fold).unwrap();
    machine.store.delete_file("a.md");
    let written = put(&kb, "a.md", "two\n").unwrap();
    assert_eq!((written.version, written.merged), (2, false));
    assert_eq!(machine.file("a.md").as_deref(), Some("two\n"));
    let kb = machine.lose(POWER);
    machine.settle(&kb);
    assert_eq!(text_of(&kb, "a.md").as_deref(), Some("two\n"));
}

#[test]
fn what_was_moved_and_then_missed_is_where_it_was_moved_to() {
    let mut machine = Machine::new();
    let kb = machine.open();
    machine.store.put_file("a.md", b"one\n");
    machine.settle(&kb);
    machine.store.rename_file("a.md", "b.md");
    machine.settle(&kb);
    machine.store.delete_file("b.md");
    machine.settle(&kb);
    let kb = machine.lose(Loss::Kill);
    let held = page(&kb, "b.md").unwrap();
    assert!(held.missing_on_disk && held.page_id == "b.md");
    let found = kb.verify(&me()).unwrap().findings;
    let named: Vec<&str> = found.iter().map(|f| &*f.item).collect();
    assert_eq!(named, ["b.md"], "only the held deletion: {found:?}");
}

#[test]
fn a_file_edited_and_then_swapped_with_another_is_taken_up() {
    let machine = Machine::new();
    let kb = machine.open();
    machine.store.put_file("a.md", b"one\n");
    machine.store.put_file("b.md", b"two\n");
    machine.settle(&kb);
    machine.store.put_file("a.md", b"one more\n");
    machine.store.rename_file("a.md", ".c");
    machine.store.rename_file("b.md", "a.md");
    machine.store.rename_file(".c", "b.md");
    machine.settle(&kb);
    assert_eq!(text_of(&kb, "a.md").as_deref(), Some("two\n"));
    assert_eq!(text_of(&kb, "b.md").as_deref(), Some("one more\n"));
    verify_clean(&kb);
}

/// Fails or interrupts once, at one point.
struct Once {
    point: &'static str,
    /// How often the point is passed before.
    passes: AtomicUsize,
    act: Box<dyn Fn() -> std::io::Result<()> + Send + Sync>,
}

impl Once {
    fn at(
        point: &'static str,
        passes: usize,
        act: impl Fn() -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Arc<Once> {
        Arc::new(Once {
            point,
            passes: passes.into(),
            act: Box::new(act),
        })
    }
}

impl Failpoints for Once {
    fn reach(&self, point: &'static str) -> std::io::Result<()> {
        if point != self.point {
            return Ok(());
        }
        match self.passes.fetch_sub(1, Ordering::SeqCst) {
            0 => (self.act)(),
            _ => Ok(()),
        }
    }
}

#[test]
fn a_record_whose_writer_failed_is_published_all_the_same() {
    for point in [
        "core.after_append",
        "core.after_replace",
        "core.before_publish",
    ] {
        let mut machine = Machine::new();
        machine.store.put_file("b.md", b"[[a]]\n");
        let fail = || Err(std::io::Error::other("told to fail"));
        let env = Env {
            // The first page that is taken up is b.md.
            failpoints: Once::at(point, usize::from(point != "core.after_replace"), fail),
            ..machine.env()
        };
        let kb = machine.lose_with(Loss::Kill, env);
        put(&kb, "a.md", "one\n").unwrap_err();
        assert_eq!(page(&kb, "a.md").unwrap().version, 1, "{point}");
        machine.settle(&kb);
        // The folder is the truth: of a page whose file was never written, history is left.
        let left = (point != "core.after_append").then_some(1);
        let version = page(&kb, "a.md").map(|page| page.version);
        assert_eq!(version, left, "{point}");
        let written = put(&kb, "a.md", "two\n").unwrap();
        assert_eq!(written.version, left.unwrap_or(0) + 1, "{point}");
        machine.settle(&kb);
        verify_clean(&kb);
    }
}

#[test]
fn of_two_strangers_saves_during_one_write_the_later_one_stands() {
    let mut machine = Machine::new();
    let kb = machine.open();
    put(&kb, "a.md", "one\n").unwrap();
    drop(kb);
    // What this store is does not matter yet: the next one is reached through the cell.
    let cell: Arc<std::sync::OnceLock<Arc<MemStore>>> = Arc::default();
    let save = {
        let cell = cell.clone();
        move || {
            cell.get().unwrap().put_file("a.md", b"the later save\n");
            Ok(())
        }
    };
    let env = Env {
        failpoints: Once::at("core.before_append", 1, save),
        ..machine.env()
    };
    let kb = machine.lose_with(Loss::Kill, env);
    let _ = cell.set(machine.store.clone());
    machine.store.put_file("a.md", b"\xff not a text\n");
    // Our text goes in, theirs comes out and is recorded: then they save again.
    put(&kb, "a.md", "ours\n").unwrap_err();
    assert_eq!(machine.file("a.md").as_deref(), Some("the later save\n"));
}

#[test]
fn links_follow_pages_that_came_while_the_database_was_away() {
    let machine = Machine::new();
    let kb = machine.open();
    put(&kb, "a.md", "[[b]]\n").unwrap();
    kb.close();
    drop(kb);
    let kept = tempfile::tempdir().unwrap();
    copy_tree(machine.index.path(), kept.path());
    let kb = machine.open();
    put(&kb, "b.md", "here\n").unwrap();
    kb.close();
    drop(kb);
    let old = "escurel.duckdb";
    std::fs::copy(kept.path().join(old), machine.index.path().join(old)).unwrap();
    let kb = machine.open();
    verify_clean(&kb);
}

#[test]
fn an_older_text_index_ranks_like_a_new_one() {
    let mut machine = Machine::new();
    let kb = machine.open();
    put(&kb, "a.md", "word\n").unwrap();
    put(&kb, "b.md", "another thing altogether\n").unwrap();
    kb.close();
    drop(kb);
    let kept = tempfile::tempdir().unwrap();
    copy_tree(machine.index.path(), kept.path());
    let kb = machine.open();
    put(&kb, "b.md", "something shorter\n").unwrap();
    kb.close();
    drop(kb);
    std::fs::remove_dir_all(machine.index.path().join("text")).unwrap();
    copy_tree(
        &kept.path().join("text"),
        &machine.index.path().join("text"),
    );
    let kb = machine.open();
    let older = score(&kb, "word");
    let kb = machine.lose(Loss::Kill);
    assert_eq!(score(&kb, "word"), older);
}

fn score(kb: &Kb, word: &str) -> Vec<f32> {
    let request = escurel_core::api::SearchRequest {
        queries: vec![word.to_owned()],
        k: 5,
        ..Default::default()
    };
    let hits = kb.search(&me(), &request).unwrap().hits;
    hits.iter().map(|hit| hit.score).collect()
}
