//! One tenant's knowledge base: opening, closing and what its parts share.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use escurel_access::{EventAcl, OpenPolicy, Policy};
use escurel_md::Layout;
use escurel_search::{Generation, OpenState, Opened, Reranker, TextIndex};
use escurel_store::{
    Env, FsStore, Holder, Kept, Lock, MemStore, Paths, Store, StoreError, Uid, Unrecorded,
};
use parking_lot::Mutex;

use crate::deliveries::DeliveryLog;
use crate::lane::{Lane, LaneState};
use crate::lately::Lately;
use crate::maintain::{Signal, Signals, Threads};
use crate::meaning::{Meaning, Vectors};
use crate::notices::Notices;
use crate::past::PastViews;
use crate::progress::Progress;
use crate::reconcile::deletions::Deletions;
use crate::recover::Recovered;
use crate::sessions::Sessions;
use crate::sql::SqlLane;
use crate::view::View;
use crate::write::{AutonomyLint, PageLocks};
use crate::{Code, Refusal, Result, builtin, recover, sums};

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
    /// What finds pages by meaning.
    pub vectors: Vectors,
    /// What has a second look at the best hits.
    pub reranker: Option<Arc<dyn Reranker>>,
    /// What a skill page with an unknown `autonomy` is worth.
    pub autonomy_lint: AutonomyLint,
    /// Whether the rule about who sees which event holds.
    pub event_acl: EventAcl,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions {
            policy: Arc::new(OpenPolicy),
            env: Env::system(),
            tenant: None,
            cache_home: None,
            read_only: false,
            vectors: Vectors::default(),
            reranker: None,
            autonomy_lint: AutonomyLint::default(),
            event_acl: EventAcl::default(),
        }
    }
}

impl OpenOptions {
    /// The folder for what can be made or fetched again.
    pub fn cache_home(&self) -> PathBuf {
        self.cache_home.clone().unwrap_or_else(default_cache_home)
    }

    fn tenant(&self) -> &str {
        self.tenant.as_deref().unwrap_or("default")
    }

    /// The same, for a folder that has been served: where its state is. Creates nothing.
    ///
    /// # Errors
    /// `folder_not_served`, `folder_not_found`.
    pub fn as_served(mut self, folder: &Path) -> Result<OpenOptions> {
        match Paths::kept(folder, self.tenant(), &self.cache_home())? {
            Some(Kept::Cache) => self.read_only = true,
            Some(Kept::Inside) => {}
            None => {
                let folder = folder.display();
                return Err(Refusal::new(
                    Code::FolderNotServed,
                    format!("{folder} has no history and no index."),
                ));
            }
        }
        Ok(self)
    }

    pub(crate) fn paths(&self, folder: &Path) -> Result<Paths> {
        let (cache, tenant) = (self.cache_home(), self.tenant());
        if self.read_only && !folder.join("tenants").is_dir() {
            return Ok(Paths::vault_read_only(folder, &cache)?);
        }
        Ok(Paths::detect(folder, tenant, &cache)?)
    }
}

/// The user's cache folder.
pub fn default_cache_home() -> PathBuf {
    let from_env = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
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
    threads: Mutex<Option<Threads>>,
    scratch: Option<Scratch>,
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
    pub(crate) sessions: Sessions,
    pub(crate) lately: Lately,
    pub(crate) meaning: Meaning,
    pub(crate) reranker: Option<Arc<dyn Reranker>>,
    pub(crate) autonomy_lint: AutonomyLint,
    pub(crate) event_acl: EventAcl,
    /// One writer of each id that is no page.
    pub(crate) id_locks: PageLocks,
    /// One caller of each key.
    pub(crate) request_locks: PageLocks,
    pub(crate) notices: Notices,
    pub(crate) deliveries_log: DeliveryLog,
    /// The whole journal was read once, so that the tables are what it says.
    pub(crate) caught_up: AtomicBool,
    pub(crate) tenant: String,
    pub(crate) past: PastViews,
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
        let parts = Parts::of(options.paths(folder)?, &options)?;
        let warning = stray_pages(folder, &parts);
        let progress = Progress::default();
        warning
            .into_iter()
            .for_each(|warning| progress.warn(warning));
        std::fs::create_dir_all(&parts.index)?;
        let recovered = recover::load(&parts.index, &progress);
        let sums = sums::load(&parts.index);
        let files = parts.files.as_ref();
        if let Some(files) = files {
            sums::tell_missing(files, &sums, &progress);
        }
        // What was derived from other records than these was derived from nothing.
        let trusted = |files: &Arc<FsStore>| !sums.is_empty() && files.begins_with(&sums);
        let derived = |files| if trusted(files) { recovered.begin() } else { 0 };
        let Some(why) = files.and_then(|files| broken(files, derived(files))) else {
            return Kb::start(parts, recovered, progress, None);
        };
        // What was derived from the journal is kept for when it is whole again.
        let scratch = Scratch::new();
        let parts = parts.without_journal(&scratch.0, why)?;
        Kb::start(parts, recover::fresh(), progress, Some(scratch))
    }

    /// Reads a folder and leaves no trace in it: history and index go to a
    /// temporary folder that is deleted in the end.
    ///
    /// # Errors
    /// `folder_not_found`, `io_error`.
    pub fn glance(folder: &Path, options: OpenOptions) -> Result<Arc<Kb>> {
        let scratch = Scratch::new();
        let paths = Paths::aside(folder, options.tenant(), &scratch.0)?;
        let options = OpenOptions {
            vectors: Vectors::Off("the folder is not served".to_owned()),
            ..options
        };
        let parts = Parts::of(paths, &options)?;
        Kb::start(parts, recover::fresh(), Progress::default(), Some(scratch))
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
        let parts = Parts::in_memory(store, layout, policy, &index);
        Kb::start(parts, recover::fresh(), Progress::default(), None)
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
        std::fs::create_dir_all(index)?;
        let parts = Parts::in_memory(store, layout, policy, index);
        let progress = Progress::default();
        let recovered = recover::load(index, &progress);
        Kb::step(put_together(parts, recovered, progress)?)
    }

    /// The same without DuckDB and without files of the text index, for many more schedules:
    /// what needs them is refused.
    ///
    /// # Errors
    /// What recovery ends with.
    pub fn bare(
        store: Arc<MemStore>,
        layout: Layout,
        policy: Arc<dyn Policy>,
        index: &Path,
    ) -> Result<Arc<Kb>> {
        std::fs::create_dir_all(index)?;
        let parts = Parts::in_memory(store, layout, policy, index);
        let progress = Progress::default();
        let mut recovered = recover::load(index, &progress);
        let (derived, head) = (
            recovered.seq.max(recovered.tables.seq()),
            parts.store.head(),
        );
        if derived > head {
            recovered = recover::begin_anew(index, head, derived, &progress)?;
        }
        let core = assemble(
            parts,
            recovered,
            TextIndex::in_memory(),
            SqlLane::none(),
            progress,
        );
        let core = Arc::new(core);
        core.install_builtin(true);
        Kb::step(core)
    }

    fn step(core: Arc<Core>) -> Result<Arc<Kb>> {
        let kb = Kb {
            core,
            threads: Mutex::default(),
            scratch: None,
        };
        kb.core.start_up()?;
        Ok(Arc::new(kb))
    }

    fn start(
        parts: Parts,
        recovered: Recovered,
        progress: Progress,
        scratch: Option<Scratch>,
    ) -> Result<Arc<Kb>> {
        let core = put_together(parts, recovered, progress)?;
        let threads = Mutex::new(Some(crate::maintain::start(&core)?));
        Ok(Arc::new(Kb {
            core,
            threads,
            scratch,
        }))
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
    /// `store_locked` while somebody serves the folder; `journal_broken` when it
    /// could not be derived again.
    pub fn forget_index(folder: &Path, options: &OpenOptions) -> Result<()> {
        let paths = options.paths(folder)?;
        let files = FsStore::open(&paths, options.env.clone())?;
        if let Some(why) = files.broken_after(0) {
            return Err(why.into());
        }
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
        self.core.meaning.stop();
        self.core.sessions.wake();
        if let Some(threads) = self.threads.lock().take() {
            threads.end();
        }
        self.core.save();
        self.core.save_vectors();
        self.core.sql.close();
        if let Some(scratch) = &self.scratch {
            scratch.remove();
        }
    }
}

/// What a knowledge base is made of.
pub(crate) struct Parts {
    pub store: Arc<dyn Store>,
    pub files: Option<Arc<FsStore>>,
    paths: Option<Paths>,
    layout: Layout,
    pub index: PathBuf,
    policy: Arc<dyn Policy>,
    vectors: Vectors,
    reranker: Option<Arc<dyn Reranker>>,
    autonomy_lint: AutonomyLint,
    event_acl: EventAcl,
    tenant: String,
}

impl Parts {
    pub fn of(paths: Paths, options: &OpenOptions) -> Result<Parts> {
        let files = Arc::new(FsStore::open(&paths, options.env.clone())?);
        Ok(Parts {
            store: files.clone(),
            files: Some(files),
            layout: layout_of(&paths),
            index: paths.index.clone(),
            policy: options.policy.clone(),
            vectors: options.vectors.clone(),
            reranker: options.reranker.clone(),
            autonomy_lint: options.autonomy_lint,
            event_acl: options.event_acl,
            tenant: options.tenant().to_owned(),
            paths: Some(paths),
        })
    }

    fn in_memory(
        store: Arc<MemStore>,
        layout: Layout,
        policy: Arc<dyn Policy>,
        index: &Path,
    ) -> Parts {
        Parts {
            store,
            files: None,
            paths: None,
            layout,
            index: index.to_owned(),
            policy,
            vectors: Vectors::default(),
            reranker: None,
            autonomy_lint: AutonomyLint::default(),
            event_acl: EventAcl::default(),
            tenant: OpenOptions::default().tenant().to_owned(),
        }
    }

    /// The same pages, their history and index in `scratch`.
    fn without_journal(mut self, scratch: &Path, why: StoreError) -> Result<Parts> {
        self.index = scratch.join("index");
        std::fs::create_dir_all(&self.index)?;
        if let Some(files) = self.files.clone() {
            self.store = Arc::new(Unrecorded::new(files, &scratch.join("journal"), why)?);
        }
        Ok(self)
    }
}

/// Why the records that a start needs cannot be read.
pub(crate) fn broken(files: &FsStore, derived: u64) -> Option<StoreError> {
    let after = if derived > files.head() { 0 } else { derived };
    files.broken_after(after)
}

/// A folder that is deleted in the end, also of an opening that failed.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        Scratch(std::env::temp_dir().join(format!("escurel-{}", ulid::Ulid::generate())))
    }

    fn remove(&self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Whoever keeps notes beside `tenants/` may think that they are served.
fn stray_pages(folder: &Path, parts: &Parts) -> Option<String> {
    if parts.layout != Layout::Tenant {
        return None;
    }
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let name = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .find(|name| escurel_store::is_page(name))?;
    Some(format!(
        "{} holds tenants/, so only what is in there is served; {name} and other notes beside it are not. Serve a folder \
         that has no tenants/ to serve its notes in place.",
        folder.display()
    ))
}

pub(crate) fn put_together(
    parts: Parts,
    mut recovered: Recovered,
    progress: Progress,
) -> Result<Arc<Core>> {
    let head = parts.store.head();
    let mut text = open_text(&parts.index, recovered.generation, &progress)?;
    let derived = recovered.seq.max(recovered.tables.seq());
    let derived = derived.max(text.index.committed_seq());
    if derived > head {
        drop(text);
        recovered = recover::begin_anew(&parts.index, head, derived, &progress)?;
        text = open_text(&parts.index, recovered.generation, &progress)?;
    }
    let anew = text.state != OpenState::Intact;
    let sql = SqlLane::start(
        parts.index.clone(),
        recovered.generation,
        parts.store.clone(),
        parts.layout,
    );
    let core = Arc::new(assemble(parts, recovered, text.index, sql, progress));
    core.install_builtin(anew);
    Ok(core)
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

fn assemble(
    parts: Parts,
    recovered: Recovered,
    text: TextIndex,
    sql: SqlLane,
    progress: Progress,
) -> Core {
    let Parts {
        store,
        files,
        paths,
        layout,
        index,
        policy,
        vectors,
        reranker,
        autonomy_lint,
        event_acl,
        tenant,
    } = parts;
    let meaning = Meaning::new(vectors, paths.as_ref().map(|paths| paths.cache.clone()));
    store
        .warnings()
        .into_iter()
        .for_each(|warning| progress.warn(warning));
    let Recovered {
        dir,
        seq,
        generation,
        saved,
        tables,
    } = recovered;
    if saved.is_some() {
        progress.complete();
    }
    // An index that lacks them saves them soon, whether or not anything changes.
    let tables_saved = tables.seq() >= seq;
    let state = LaneState::new(dir, seq, tables);
    let text = Arc::new(text);
    let view = View::new(&state, text.snapshot());
    Core {
        sql,
        index,
        view: ArcSwap::from_pointee(view),
        lane: Lane::new(state),
        deletions: Deletions::default(),
        signals: Signals::new(saved.filter(|_| tables_saved)),
        page_locks: PageLocks::default(),
        sessions: Sessions::default(),
        lately: Lately::default(),
        meaning,
        reranker,
        autonomy_lint,
        event_acl,
        id_locks: PageLocks::default(),
        request_locks: PageLocks::default(),
        notices: Notices::default(),
        deliveries_log: DeliveryLog::default(),
        caught_up: AtomicBool::new(false),
        tenant,
        past: PastViews::default(),
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

    /// Whose knowledge base it is; `default` for a folder of notes.
    pub fn tenant(&self) -> &str {
        &self.tenant
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
    "core.after_remove",
    "core.before_publish",
    "core.after_publish",
    "core.before_save",
    "core.after_erase_record",
    "core.before_purge",
    "core.before_applied",
    "core.before_directory_save",
];
