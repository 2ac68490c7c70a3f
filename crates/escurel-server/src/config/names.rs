//! Names in the environment that look like ours: whose they are.

use super::{ConfigError, KEYS};

/// What this release does about a name that belongs to a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Later {
    /// Ignoring it would change what is protected or promised.
    Refused(&'static str),
    /// Nothing depends on it yet.
    Unused,
}

/// Names of settings that other releases have.
pub fn later(name: &str) -> Option<Later> {
    Some(match name {
        "ESCUREL_OIDC_ISSUER"
        | "ESCUREL_OIDC_AUDIENCE"
        | "ESCUREL_OIDC_JWKS_URI"
        | "ESCUREL_TENANT_CLAIM"
        | "ESCUREL_ADMIN_ROLE_CLAIM"
        | "ESCUREL_ADMIN_ROLE"
        | "ESCUREL_OPERATOR_ROLE"
        | "ESCUREL_GROUPS_CLAIM" => Later::Refused("token verification"),
        "ESCUREL_WRITE_ACL" => Later::Refused("access rules"),
        "ESCUREL_PACK_SECRET" => Later::Unused,
        _ => return None,
    })
}

/// Variables that container platforms derive from a service called `escurel`
/// are not ours, nor is what names the configuration file itself.
pub fn ours(name: &str) -> bool {
    name.starts_with("ESCUREL_")
        && !name.starts_with("ESCUREL_SERVICE_")
        && !name.starts_with("ESCUREL_PORT")
        && !matches!(name, "ESCUREL_CONFIG" | "ESCUREL_SLOW_TESTS")
}

pub(super) fn check_later(name: &str, value: &str) -> Result<(), ConfigError> {
    match later(name) {
        Some(Later::Refused(_)) if value.is_empty() => Ok(()),
        Some(Later::Refused(what)) => Err(ConfigError::Later {
            name: name.to_owned(),
            what,
        }),
        Some(Later::Unused) => Ok(()),
        None => Err(ConfigError::Unknown {
            origin: "The environment".to_owned(),
            name: name.to_owned(),
            hint: hint(name, KEYS.iter().filter(|k| !k.hidden).map(|k| k.env)),
        }),
    }
}

/// ` Did you mean …?` for the nearest known name, if one is near.
pub(super) fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let best = known
        .map(|k| (strsim::jaro_winkler(name, k), k))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(score, _)| *score > 0.8)
        .map_or_else(String::new, |(_, k)| format!(" Did you mean {k}?"))
}
