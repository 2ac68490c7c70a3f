//! A broken journal is gone on with. Only while nobody serves the folder.

use std::path::Path;

use escurel_access::Caller;
use escurel_store::FsStore;

use crate::api::RepairPlan;
use crate::kb::OpenOptions;
use crate::verify::demand_admin;
use crate::{Kb, Result};

impl Kb {
    /// What [`Kb::repair_journal`] would do; changes nothing.
    ///
    /// # Errors
    /// `admin_required`, `store_locked`, `not_supported` (a newer release wrote a record), `io_error`.
    pub fn plan_repair(
        folder: &Path,
        options: &OpenOptions,
        caller: &Caller,
    ) -> Result<RepairPlan> {
        demand_admin(caller)?;
        let files = FsStore::open(&options.paths(folder)?, options.env.clone())?;
        Ok(files.plan_repair()?)
    }

    /// Sets a broken chain aside and goes on with what can be read of it; the index, which
    /// was derived from the old chain, is derived again at the next opening.
    ///
    /// # Errors
    /// Those of [`Kb::plan_repair`], `read_only`, `disk_full`.
    pub fn repair_journal(
        folder: &Path,
        options: &OpenOptions,
        caller: &Caller,
    ) -> Result<RepairPlan> {
        demand_admin(caller)?;
        let files = FsStore::open(&options.paths(folder)?, options.env.clone())?;
        let plan = files.plan_repair()?;
        files.repair(&plan, &caller.subject)?;
        Ok(plan)
    }
}
