//! The knowledge base's tools.
//!
//! [`TOOLS`] is the only list of them; its order is the order of every
//! derived surface.

mod admin_webhook_deliveries;
mod append_message;
mod assign_event;
mod blame_page;
mod capture_event;
mod delete_page;
mod diff_pages;
mod edit_page;
mod erase;
mod expand;
mod list_events;
mod list_inbox;
mod list_instances;
mod list_messages;
mod list_skills;
mod list_snapshots;
mod move_page;
mod neighbours;
mod page_history;
mod provenance_ancestry;
mod provenance_report;
mod resolve;
mod restore_page;
mod search;
mod update_page;
mod validate;

use crate::live;
use crate::tool::{Entry, entry};

pub static TOOLS: &[Entry] = &[
    entry::<search::Search>(),
    entry::<resolve::Resolve>(),
    entry::<expand::Expand>(),
    entry::<neighbours::Neighbours>(),
    entry::<list_skills::ListSkills>(),
    entry::<list_instances::ListInstances>(),
    entry::<validate::Validate>(),
    entry::<update_page::UpdatePage>(),
    entry::<edit_page::EditPage>(),
    entry::<move_page::MovePage>(),
    entry::<delete_page::DeletePage>(),
    entry::<restore_page::RestorePage>(),
    entry::<live::open_session::OpenSession>(),
    entry::<live::apply_op::ApplyOp>(),
    entry::<live::close_session::CloseSession>(),
    entry::<live::list_op_authors::ListOpAuthors>(),
    entry::<provenance_ancestry::ProvenanceAncestry>(),
    entry::<provenance_report::ProvenanceReport>(),
    entry::<list_snapshots::ListSnapshots>(),
    entry::<page_history::PageHistory>(),
    entry::<diff_pages::DiffPages>(),
    entry::<blame_page::BlamePage>(),
    entry::<capture_event::CaptureEvent>(),
    entry::<list_inbox::ListInbox>(),
    entry::<list_events::ListEvents>(),
    entry::<assign_event::AssignEvent>(),
    entry::<append_message::AppendMessage>(),
    entry::<list_messages::ListMessages>(),
    entry::<erase::Erase>(),
    entry::<admin_webhook_deliveries::AdminWebhookDeliveries>(),
];
