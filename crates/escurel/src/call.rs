//! Reaching a folder: through its owner if it has one, else by opening it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use escurel_core::{Code, Kb, Refusal};
use escurel_server::config::Config;
use escurel_server::{boot, client};
use serde_json::Value;

use crate::failure::Failure;
use crate::progress;

/// An owner that is just starting or ending has this long.
const SETTLE: Duration = Duration::from_secs(5);
/// An owner that has not said a word for so long is not going to.
const SILENCE: Duration = Duration::from_secs(10);

/// Whom a command turned to.
pub enum Reached<T> {
    /// The folder's owner, over its socket.
    Owner(std::path::PathBuf),
    /// Nobody: the work was done here.
    Here(T),
}

/// How a folder without an owner is opened: [`boot::open`] or one of its kin.
pub type Open = fn(&Config, &Path) -> Result<Arc<Kb>, Refusal>;

/// The owner, or the folder opened here and ready.
pub fn reach(config: &Config, folder: &Path, open: Open) -> Result<Reached<Arc<Kb>>, Failure> {
    let reached = owner_or(config, folder, open)?;
    if let Reached::Here(kb) = &reached {
        progress::wait(kb);
    }
    Ok(reached)
}

/// The owner's socket, or what `work` makes of the folder that has none.
pub fn owner_or<T>(
    config: &Config,
    folder: &Path,
    work: impl Fn(&Config, &Path) -> Result<T, Refusal>,
) -> Result<Reached<T>, Failure> {
    let deadline = Instant::now() + SETTLE;
    loop {
        // A folder that was never served has no owner.
        if let Ok(socket) = boot::served_socket(config, folder)
            && listens(&socket)
        {
            return Ok(Reached::Owner(socket));
        }
        match work(config, folder) {
            Ok(done) => return Ok(Reached::Here(done)),
            Err(refusal) if refusal.code == Code::StoreLocked && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(refusal) => return Err(refusal.into()),
        }
    }
}

/// Is there an owner to talk to?
pub fn listens(socket: &Path) -> bool {
    let Ok(runtime) = small_runtime() else {
        return false;
    };
    runtime.block_on(boot::connect(socket)).is_ok()
}

fn small_runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}

fn demand_answers(socket: &Path) -> Result<(), Failure> {
    if small_runtime()?.block_on(client::answers(socket, SILENCE)) {
        return Ok(());
    }
    Err(Failure::unavailable(format!(
        "unavailable: The process that serves this folder has not answered for {} seconds. Is it suspended? Let it go on, or \
         stop it.",
        SILENCE.as_secs()
    )))
}

/// Asks the owner; its refusals become ours.
pub fn ask(socket: &Path, path: &str, body: &Value) -> Result<Value, Failure> {
    demand_answers(socket)?;
    let (status, bytes) =
        small_runtime()?.block_on(client::post(socket, path, Bytes::from(body.to_string())))?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| {
        Failure::unavailable(
            "unavailable: The owner's answer is not JSON. Is it another version? Restart it.",
        )
    })?;
    if (200..300).contains(&status) {
        return Ok(value);
    }
    let text = |key: &str| value["error"][key].as_str().unwrap_or_default();
    Err(Failure::coded(text("code"), text("message")))
}

/// Copies the owner's answer to `out` as it comes.
pub fn stream(socket: &Path, path: &str, out: &mut dyn std::io::Write) -> Result<(), Failure> {
    use http_body_util::BodyExt;
    demand_answers(socket)?;
    small_runtime()?.block_on(async {
        let mut body = client::send(socket, path, Bytes::new()).await?.into_body();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|e| {
                Failure::unavailable(format!(
                    "unavailable: The answer broke off: {e}. Repeat the command."
                ))
            })?;
            if let Some(data) = frame.data_ref() {
                out.write_all(data)?;
            }
        }
        Ok(())
    })
}
