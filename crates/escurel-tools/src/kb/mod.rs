//! The knowledge base's tools.
//!
//! [`TOOLS`] is the only list of them; its order is the order of every
//! derived surface.

mod expand;
mod list_instances;
mod list_skills;
mod list_snapshots;
mod neighbours;
mod provenance_ancestry;
mod provenance_report;
mod resolve;
mod search;
mod validate;

use crate::tool::{Entry, entry};

pub static TOOLS: &[Entry] = &[
    entry::<search::Search>(),
    entry::<resolve::Resolve>(),
    entry::<expand::Expand>(),
    entry::<neighbours::Neighbours>(),
    entry::<list_skills::ListSkills>(),
    entry::<list_instances::ListInstances>(),
    entry::<validate::Validate>(),
    entry::<provenance_ancestry::ProvenanceAncestry>(),
    entry::<provenance_report::ProvenanceReport>(),
    entry::<list_snapshots::ListSnapshots>(),
];
