//! `escurel serve`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use escurel_core::Kb;
use escurel_server::boot::{self, LocalSocket, Server, Stop};
use escurel_server::config::Config;

use crate::banner::{self, Addresses};
use crate::failure::Failure;
use crate::folder::{self, Chosen};
use crate::{progress, show};

/// Calls that block wait for one of these threads.
const BLOCKING_THREADS: usize = 64;

pub fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .build()?)
}

pub fn run(mut config: Config, chosen: Chosen) -> Result<ExitCode, Failure> {
    let folder = folder::resolve(chosen, &mut config)?;
    let runtime = runtime()?;
    let kb = boot::open(&config, &folder)?;
    let served = runtime.block_on(serve(&config, &folder, &kb));
    kb.close();
    runtime.shutdown_timeout(std::time::Duration::from_secs(5));
    served.map(|()| ExitCode::SUCCESS)
}

async fn serve(config: &Config, folder: &Path, kb: &Arc<Kb>) -> Result<(), Failure> {
    let stop = Stop::on_signals()?;
    let listener = boot::bind(config.listen).await?;
    let metrics = match config.metrics_listen {
        Some(address) => Some(boot::bind(address).await?),
        None => None,
    };
    let addresses = Addresses {
        http: listener.local_addr()?,
        metrics: metrics
            .as_ref()
            .map(|listener| listener.local_addr())
            .transpose()?,
    };
    kb.publish_address(&addresses.mcp())?;
    let server = Server::new(Arc::clone(kb), config, &stop);
    let mut socket = server.open_socket();
    show::line(&format!(
        "escurel {} listens on {}",
        env!("CARGO_PKG_VERSION"),
        addresses.mcp()
    ));
    if addresses.http.ip().is_unspecified() && config.allowed_hosts.is_empty() {
        show::line(
            "Other machines are refused until ESCUREL_ALLOWED_HOSTS has the name by which they call this one.",
        );
    }

    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(boot::serve_tcp(
        listener,
        server.public(config, addresses.http),
        stop.clone(),
    ));
    if let Some(metrics) = metrics {
        serving.spawn(boot::serve_tcp(metrics, server.metrics(), stop.clone()));
    }
    if let Some(local) = socket.as_mut().and_then(LocalSocket::take_listener) {
        serving.spawn(boot::serve_unix(local, server.local(), stop.clone()));
    }
    announce(Arc::clone(kb), folder.to_owned(), addresses);
    while serving.join_next().await.is_some() {}
    Ok(())
}

/// Requests are answered meanwhile, from what is there already.
fn announce(kb: Arc<Kb>, folder: PathBuf, addresses: Addresses) {
    tokio::task::spawn_blocking(move || {
        if progress::wait(&kb) {
            let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("escurel"));
            show::line(&banner::text(&folder, &program, &kb.status(), &addresses));
            progress::watch_vectors(&kb);
        } else {
            // Closing says so itself; a failure would otherwise look like endless indexing.
            kb.phase()
                .warnings
                .iter()
                .for_each(|warning| show::note(&format!("warning: {warning}")));
        }
    });
}
