//! Every tool, declared once: argument struct, policy, output struct, handler.
//!
//! Owns the wire shapes of the tools, the one runner ([`dispatch`]) and what is
//! derived from the declarations: `tools/list`, OpenAPI, sub-commands, the
//! reference pages. Knows no transport and no rule of the domain; a handler
//! translates and calls `escurel-core`.
//!
//! Invariant: nothing outside a tool's file names that tool, except the one
//! list in [`kb`].

mod arguments;
mod catalog;
pub mod cli;
mod dispatch;
pub mod kb;
mod live;
mod nearest;
mod once;
mod openapi;
mod reference;
mod schema;
mod spec;
mod table;
mod tool;
pub mod wire;

pub use catalog::Catalog;
pub use cli::{ArgKind, ArgSpec, CommandSpec, commands};
pub use dispatch::{DispatchError, dispatch};
pub use openapi::{openapi, openapi_with};
pub use reference::{errors_md, reference_md};
pub use spec::{Cli, Effect, Execution, Numbered, Quota, Run, Scope, Spec};
pub use table::{Table, render_table};
pub use tool::{Call, Entry, Tool, entry};
pub use wire::{event_json, refusal_json};
