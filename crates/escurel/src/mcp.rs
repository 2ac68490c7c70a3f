//! `escurel mcp`: the stdio server.

use std::process::ExitCode;

use escurel_server::boot::Stop;
use escurel_server::config::Config;
use escurel_server::stdio;

use crate::failure::Failure;
use crate::folder::{self, Chosen};
use crate::serve::runtime;

pub fn run(mut config: Config, chosen: Chosen) -> Result<ExitCode, Failure> {
    let folder = folder::resolve(chosen, &mut config)?;
    let runtime = runtime()?;
    let served = runtime.block_on(async move {
        let stop = Stop::on_signals()?;
        stdio::run(
            config,
            folder,
            tokio::io::stdin(),
            tokio::io::stdout(),
            stop,
        )
        .await?;
        Ok::<(), Failure>(())
    });
    // A thread may still wait for input that never comes.
    runtime.shutdown_background();
    served.map(|()| ExitCode::SUCCESS)
}
