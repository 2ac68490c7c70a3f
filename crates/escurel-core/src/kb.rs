//! One tenant's knowledge base: opening, closing and what its parts share.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use arc_swap::ArcSwap;
use escurel_access::{OpenPolicy, Policy};
use escurel_md::Layout;
use escurel_search::{Generation, OpenState, Opened, TextIndex};
use escurel_store::{Env, FsStore, Holder, Lock, MemStore, Paths, Store, Uid};
use parking_lot::Mutex;

use crate::lane::{Lane, LaneState};
use crate::lately::Lately;
use crate::maintain::{Signal, Signals};
use crate::progress::Progress;
use crate::reconcile::deletions::Deletions;
use crate::recover::Recovered;
use crate::sql::SqlLane;
use crate::view::View;
use crate::write::PageLocks;
use crate::{Code, Refusal, Result, builtin, recover};

/// How to open a folder.
pub struct OpenOptions {
    pub policy: Arc<dyn Policy>,
    pub env: Env,
    /// Tenant of a data directory; `default` when absent. A vault has none.
    pub tenant: Option<String>,
    /// Where state of read-only folders goes; the user's cache folder when absent.
    pub cache_home: Option<PathBuf>,
    /// Never write into the folder, even if it can be written.
    pub read_only: bool,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions {
            policy: Arc::new(OpenPolicy),
            env: Env::system(),
            tenant: None,
            cache_home: None,
            read_only: false,
        }
    }
}

impl OpenOptions {
    fn paths(&self, folder: &Path) -> Result<Paths> {
        let cache = self.cache_home.clone().unwrap_or_else(default_cache_home);
        let tenant = self.tenant.as_deref().unwrap_or("default");
        if self.read_only && !folder.join("tenants").is_dir() {
            return Ok(Paths::vault_read_only(folder, &cache)?);
        }
        Ok(Paths::detect(folder, tenant, &cache)?)
    }
}

fn default_cache_home() -> PathBuf {
    let from_env = |name: &str| std::env::var_os(name).map(PathBuf::from);
    from_env("XDG_CACHE_HOME")
        .or_else(|| from_env("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("escurel")
}

/// The owning handle. Dropping it closes the knowledge base.
///
/// All methods block; none needs an async runtime. Methods that say so only
/// touch memory and return in microseconds.
pub struct Kb {
    core: Arc<Core>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Deref for Kb {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

impl Drop for Kb {
    fn drop(&mut self) {
        self.close();
    }
}

/// The parts. Background threads share it with the handle.
pub struct Core {
    pub(crate) store: Arc<dyn Store>,
    /// Set when the pages are real files: the watcher needs them.
    pub(crate) files: Option<Arc<FsStore>>,
    pub(crate) paths: Option<Paths>,
    pub(crate) index: PathBuf,
    pub(crate) layout: Layout,
    pub(crate) policy: Arc<dyn Policy>,
    pub(crate) view: ArcSwap<View>,
    pub(crate) lane: Lane,
    pub(crate) text: Arc<TextIndex>,
    pub(crate) sql: SqlLane,
    pub(crate) progress: Progress,
    pub(crate) deletions: Deletions,
    pub(crate) signals: Signals,
    pub(crate) page_locks: PageLocks,
    pub(crate) lately: Lately,
    pub(crate) generation: u128,
    stop: AtomicBool,
}

impl Kb {
    /// Opens a folder: a vault, or a data directory (one that holds `tenants/`).
    ///
    /// Returns as soon as the last state is readable; recovery and indexing go
    /// on behind it. See [`Core::wait_ready`].
    ///
    /// # Errors
    /// `folder_not_found`, `store_locked`, `journal_broken`, `io_error`.
    pub fn open(folder: &Path, options: OpenOptions) -> Result<Arc<Kb>> {
        let paths = options.paths(folder)?;
        let files = Arc::new(FsStore::open(&paths, options.env.clone())?);
        let index = paths.index.clone();
        let layout = layout_of(&paths);
        Kb::start(
            files.clone(),
            Some(files),
            Some(paths),
            layout,
            &index,
            options.policy,
        )
    }

    /// A knowledge base whose pages and journal live in memory, for tests:
    /// `files` are (path, text). Ready when it returns.
    ///
    /// # Panics
    /// When the test machine has no temporary folder.
    pub fn in_memory(files: &[(&str, &str)]) -> Arc<Kb> {
        let store = Arc::new(MemStore::new(Env::system()));
        for (path, text) in files {
            store.put_file(path, text.as_bytes());
        }
        let kb = Kb::over(store, layout_for(files), Arc::new(OpenPolicy));
        #[allow(clippy::expect_used, reason = "a test helper")]
        let kb = kb.expect("an in-memory knowledge base opens");
        kb.wait_ready(&mut |_| {});
        kb
    }

    /// Over any store; the index goes into a temporary folder. For tests.
    pub fn over(store: Arc<MemStore>, layout: Layout, policy: Arc<dyn Policy>) -> Result<Arc<Kb>> {
        let index = std::env::temp_dir().join(format!("escurel-{}", ulid::Ulid::generate()));
        std::fs::create_dir_all(&index)?;
        Kb::start(store, None, None, layout, &index, policy)
    }

    /// For simulations: nothing goes on behind the calls but what [`Core::do_chore`]
    /// is told to do, so that a seed decides the order of events. Ready when it returns.
    ///
    /// # Errors
    /// What recovery ends with.
    pub fn stepped(
        store: Arc<MemStore>,
        layout: Layout,
        policy: Arc<dyn Policy>,
        index: &Path,
    ) -> Result<Arc<Kb>> {
        let core = Kb::put_together(store, None, None, layout, index, policy)?;
        let kb = Kb {
            core,
            threads: Mutex::default(),
        };
        kb.core.start_up()?;
        Ok(Arc::new(kb))
    }

    fn start(
        store: Arc<dyn Store>,
        files: Option<Arc<FsStore>>,
        paths: Option<Paths>,
        layout: Layout,
        index: &Path,
        policy: Arc<dyn Policy>,
    ) -> Result<Arc<Kb>> {
        let core = Kb::put_together(store, files, paths, layout, index, policy)?;
        let threads = Mutex::new(crate::maintain::start(&core)?);
        Ok(Arc::new(Kb { core, threads }))
    }

    fn put_together(
        store: Arc<dyn Store>,
        files: Option<Arc<FsStore>>,
        paths: Option<Paths>,
        layout: Layout,
        index: &Path,
        policy: Arc<dyn Policy>,
    ) -> Result<Arc<Core>> {
        std::fs::create_dir_all(index)?;
        let progress = Progress::default();
        let recovered = recover::load(index, &progress);
        let text = open_text(index, recovered.generation, &progress)?;
        let anew = text.state != OpenState::Intact;
        let core = Arc::new(assemble(
            store, files, paths, layout, index, policy, recovered, text.index, progress,
        ));
        core.install_builtin(anew);
        Ok(core)
    }

    /// Who owns the folder, if somebody does.
    pub fn holder(folder: &Path, options: &OpenOptions) -> Result<Option<Holder>> {
        let paths = options.paths(folder)?;
        Ok(Lock::acquire(&paths.lock)?.err())
    }

    /// Where the folder's owner listens for other processes.
    pub fn socket_path(folder: &Path, options: &OpenOptions) -> Result<PathBuf> {
        Ok(options.paths(folder)?.socket)
    }

    /// Deletes everything derived, so that the next opening derives it again.
    ///
    /// # Errors
    /// `store_locked` while somebody serves the folder.
    pub fn forget_index(folder: &Path, options: &OpenOptions) -> Result<()> {
        let paths = options.paths(folder)?;
        let _lock = Lock::acquire(&paths.lock)?.map_err(|holder| locked(&holder))?;
        match std::fs::remove_dir_all(&paths.index) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Stops background work, flushes and saves. Safe to call twice.
    pub fn close(&self) {
        if self.core.stop.swap(true, Ordering::AcqRel) {
            return;
        }
        self.core.signals.send(Signal::Stop);
        for thread in std::mem::take(&mut *self.threads.lock()) {
            let _ = thread.join();
        }
        self.core.save();
        self.core.sql.close();
    }
}

/// Test corpora that look like a tenant's are one.
fn layout_for(files: &[(&str, &str)]) -> Layout {
    let tenant = files.iter().any(|(path, _)| path.starts_with("markdown/"));
    if tenant {
        Layout::Tenant
    } else {
        Layout::Vault
    }
}

fn layout_of(paths: &Paths) -> Layout {
    match paths.layout {
        escurel_store::Layout::Vault => Layout::Vault,
        escurel_store::Layout::Tenant => Layout::Tenant,
    }
}

pub(crate) fn locked(holder: &Holder) -> Refusal {
    let address = holder
        .address
        .as_deref()
        .map(|a| format!(" at {a}"))
        .unwrap_or_default();
    Refusal::new(
        Code::StoreLocked,
        format!("Process {} serves this folder{address}.", holder.pid),
    )
}

fn open_text(index: &Path, generation: u128, progress: &Progress) -> Result<Opened> {
    let opened = TextIndex::open(&index.join("text"), Generation::current(generation))?;
    if let OpenState::MovedAside(to, reason) = &opened.state {
        progress.warn(format!(
            "The text index was damaged ({reason}); it stands at {} and is being rebuilt.",
            to.display()
        ));
    }
    Ok(opened)
}

#[allow(
    clippy::too_many_arguments,
    reason = "the one place that puts the parts together"
)]
fn assemble(
    store: Arc<dyn Store>,
    files: Option<Arc<FsStore>>,
    paths: Option<Paths>,
    layout: Layout,
    index: &Path,
    policy: Arc<dyn Policy>,
    recovered: Recovered,
    text: TextIndex,
    progress: Progress,
) -> Core {
    store
        .warnings()
        .into_iter()
        .for_each(|warning| progress.warn(warning));
    let Recovered {
        dir,
        seq,
        generation,
        saved,
    } = recovered;
    let state = LaneState::new(dir, seq);
    let text = Arc::new(text);
    let view = View::new(&state, text.snapshot());
    Core {
        sql: SqlLane::start(index.to_owned(), generation, store.clone(), layout),
        index: index.to_owned(),
        view: ArcSwap::from_pointee(view),
        lane: Lane::new(state),
        deletions: Deletions::default(),
        signals: Signals::new(saved),
        page_locks: PageLocks::default(),
        lately: Lately::default(),
        stop: AtomicBool::new(false),
        store,
        files,
        paths,
        layout,
        policy,
        text,
        progress,
        generation,
    }
}

impl Core {
    /// Built-in pages of another release give way to this one's.
    fn install_builtin(&self, anew: bool) {
        let mut state = self.lane.state.lock();
        let state = &mut *state;
        let docs = builtin::install(state, anew);
        self.text.add(docs);
        self.show(state);
    }

    /// Folder that is served; empty for one in memory.
    pub fn root(&self) -> PathBuf {
        self.paths
            .as_ref()
            .map(|paths| paths.root.clone())
            .unwrap_or_default()
    }

    /// Where other processes reach this owner.
    pub fn socket(&self) -> Option<PathBuf> {
        self.paths.as_ref().map(|paths| paths.socket.clone())
    }

    /// Tells processes that find the folder locked where its owner listens.
    pub fn publish_address(&self, address: &str) -> Result<()> {
        match self.files.as_ref().and_then(|files| files.lock()) {
            Some(lock) => Ok(lock.publish(address)?),
            None => Ok(()),
        }
    }

    pub(crate) fn stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(crate) fn now(&self) -> i64 {
        self.store.env().clock.now_micros()
    }

    pub(crate) fn new_uid(&self) -> Uid {
        self.store.env().ids.uid(self.now())
    }

    pub(crate) fn reach(&self, point: &'static str) -> Result<()> {
        Ok(self.store.env().failpoints.reach(point)?)
    }
}

/// Between each two steps of a change; those of the store come on top.
pub const FAILPOINTS: &[&str] = &[
    "core.before_append",
    "core.after_append",
    "core.after_replace",
    "core.before_publish",
    "core.after_publish",
    "core.before_save",
    "core.before_applied",
    "core.before_directory_save",
];
