//! Why a command ends without success, and the exit code that says so.

use std::fmt;
use std::io;
use std::process::ExitCode;

use escurel_core::{Audience, Code, Refusal};
use escurel_fetch::FetchError;
use escurel_search::eval::EvalError;
use escurel_server::boot::BindError;
use escurel_server::client::Unreachable;
use escurel_server::config::ConfigError;

/// Ends with a sentence for people; `code: sentence. Next step.`
#[derive(Debug)]
pub struct Failure {
    exit: u8,
    message: String,
}

/// Refused or not found.
const REFUSED: u8 = 1;
/// The command line or the settings are wrong.
const USAGE: u8 = 2;
/// Nobody answers, or the disk does not.
const UNAVAILABLE: u8 = 3;
/// As shells have it for what Ctrl-C ended.
const INTERRUPTED: u8 = 130;

impl Failure {
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure {
            exit: USAGE,
            message: message.into(),
        }
    }

    pub fn unavailable(message: impl Into<String>) -> Failure {
        Failure {
            exit: UNAVAILABLE,
            message: message.into(),
        }
    }

    /// A refusal that came over the wire.
    pub fn coded(code: &str, message: &str) -> Failure {
        let known = Code::ALL.iter().find(|c| c.name() == code);
        let exit = known.map_or(REFUSED, |code| exit_of(*code));
        Failure {
            exit,
            message: format!("{code}: {message}"),
        }
    }

    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.exit)
    }
}

fn exit_of(code: Code) -> u8 {
    match code {
        Code::InvalidArgument | Code::UnknownArgument | Code::SettingInvalid => USAGE,
        Code::StoreLocked => UNAVAILABLE,
        code if code.audience() == Audience::Caller => REFUSED,
        _ => UNAVAILABLE,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure {
            exit: exit_of(refusal.code),
            message: refusal.to_string(),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::usage(error.to_string())
    }
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Failure {
        let exit = match error {
            FetchError::Index | FetchError::Source { .. } => USAGE,
            FetchError::NotOnIndex { .. }
            | FetchError::Refused { .. }
            | FetchError::Checksum { .. }
            | FetchError::Foreign { .. } => REFUSED,
            FetchError::Offline { .. }
            | FetchError::Interrupted { .. }
            | FetchError::NoSpace { .. }
            | FetchError::Io { .. } => UNAVAILABLE,
        };
        Failure {
            exit,
            message: error.to_string(),
        }
    }
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Failure {
        Failure::unavailable(error.to_string())
    }
}

impl From<Unreachable> for Failure {
    fn from(error: Unreachable) -> Failure {
        Failure::unavailable(format!("unavailable: {error}. Repeat the command."))
    }
}

impl From<EvalError> for Failure {
    fn from(error: EvalError) -> Failure {
        let exit = match error {
            EvalError::Stopped => INTERRUPTED,
            EvalError::Missing { .. } | EvalError::Invalid { .. } | EvalError::Empty { .. } => {
                USAGE
            }
            EvalError::Search(_) | EvalError::Embed(_) => UNAVAILABLE,
        };
        Failure {
            exit,
            message: error.to_string(),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::unavailable(format!("io_error: {error}."))
    }
}
