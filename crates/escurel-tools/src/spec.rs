//! The policy of a tool: what it may do, to whom it shows, how it is charged.
//!
//! Invariant: no field has a default, so a tool without a policy does not
//! compile.

use escurel_core::Code;
use serde_json::Value;

use crate::table::Table;

/// Who may call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Agent,
    Admin,
}

/// `Deterministic`: the result is a function of what is stored and the
/// arguments. `Orchestration`: the call moves the state on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    Deterministic,
    Orchestration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Read,
    Write,
    /// Writes, and what was there before is gone.
    Destroy,
}

/// Which budget a call is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    Query,
    Write,
    Embed,
    Free,
}

/// Where a call may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// Microseconds and no disk: on the thread that took the request.
    Inline,
    /// As `Inline`, unless the call has this argument.
    InlineWithout(&'static str),
    Blocking,
}

impl Run {
    /// Where one call runs: `Inline` or `Blocking`.
    pub fn of(self, arguments: &serde_json::Value) -> Run {
        match self {
            Run::InlineWithout(argument) if arguments.get(argument).is_none_or(|v| v.is_null()) => {
                Run::Inline
            }
            Run::InlineWithout(_) => Run::Blocking,
            run => run,
        }
    }
}

/// A refusal for which the contract prints a JSON-RPC number.
#[derive(Clone, Copy, Debug)]
pub struct Numbered {
    pub code: Code,
    /// The argument at fault; `None` fits every one.
    pub at: Option<&'static str>,
    pub number: i64,
}

/// How the tool looks as a sub-command.
#[derive(Clone, Copy, Debug)]
pub struct Cli {
    /// Arguments that are given by position, in this order.
    pub positional: &'static [&'static str],
    /// Arguments whose command-line value is a file to read, `-` for standard input.
    pub from_file: &'static [&'static str],
    /// The answer for people.
    pub table: fn(&Value) -> Table,
}

#[derive(Clone, Copy, Debug)]
pub struct Spec {
    pub name: &'static str,
    pub title: &'static str,
    /// Old names that still work.
    pub aliases: &'static [&'static str],
    pub scope: Scope,
    pub execution: Execution,
    pub effect: Effect,
    pub quota: Quota,
    pub run: Run,
    /// Other spellings of arguments, accepted and not advertised: (spelling, argument).
    pub argument_aliases: &'static [(&'static str, &'static str)],
    pub numbered: &'static [Numbered],
    /// (what it shows, arguments as JSON)
    pub examples: &'static [(&'static str, &'static str)],
    pub cli: Cli,
}

impl Scope {
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Agent => "agent",
            Scope::Admin => "admin",
        }
    }
}

impl Execution {
    pub fn as_str(self) -> &'static str {
        match self {
            Execution::Deterministic => "deterministic",
            Execution::Orchestration => "orchestration",
        }
    }
}

impl Effect {
    pub fn as_str(self) -> &'static str {
        match self {
            Effect::Read => "read",
            Effect::Write => "write",
            Effect::Destroy => "destroy",
        }
    }
}

impl Quota {
    pub fn as_str(self) -> &'static str {
        match self {
            Quota::Query => "query",
            Quota::Write => "write",
            Quota::Embed => "embed",
            Quota::Free => "free",
        }
    }
}
