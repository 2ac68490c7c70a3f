//! Measures the release binary from outside, the same way every time.
//!
//! Owns the corpus that it makes, the server that it starts and the figures.
//! Refuses to link anything of the product: what it cannot see over HTTP, on
//! the disk or in /proc, a user cannot see either. Invariant: every latency is
//! put beside that of a bare handler with a body of the same size, same run.

mod bare;
mod busy;
mod client;
mod corpus;
mod languages;
mod ops;
mod report;
mod rng;
mod server;
mod stats;
mod words;
mod writes;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};

use crate::client::Client;
use crate::corpus::Corpus;
use crate::languages::Languages;
use crate::report::{Report, Start};
use crate::server::Server;

#[derive(Parser)]
#[command(
    name = "cargo xtask bench",
    about = "Measure the release binary over HTTP"
)]
struct Cli {
    #[command(subcommand)]
    role: Option<Role>,
    /// The binary to measure.
    #[arg(long, global = true)]
    binary: Option<PathBuf>,
    /// Measure on a copy of this folder of markdown.
    #[arg(long, conflicts_with = "generate")]
    corpus: Option<PathBuf>,
    /// Measure on this many generated pages: 1k, 10k, 100k or a number.
    #[arg(long, default_value = "1k", value_parser = corpus::count)]
    generate: usize,
    /// Find pages by meaning, too, with the sentence encoder in this folder.
    #[arg(long)]
    model: Option<PathBuf>,
    /// Write the figures here as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Seconds for each measured phase of each operation.
    #[arg(long, default_value_t = 1.5)]
    seconds: f64,
    /// What the generated corpus and the queries are drawn with.
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Only operations whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Mixed calls before memory is read.
    #[arg(long, default_value_t = 10_000)]
    mixed: usize,
}

#[derive(Subcommand)]
enum Role {
    /// The handler to compare with (started by the bench itself).
    #[command(hide = true)]
    Bare,
    /// Ask 40 questions in 20 languages, by words and by words and meaning.
    Languages(Languages),
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    if matches!(cli.role, Some(Role::Bare)) {
        return bare::serve();
    }
    let binary = cli.binary.as_deref().context("--binary is needed")?;
    ensure!(binary.is_file(), "no such binary: {}", binary.display());
    // One thread for the client, so that the server has the other core.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match &cli.role {
        Some(Role::Languages(asked)) => runtime.block_on(languages::run(binary, asked)),
        _ => runtime.block_on(measure(cli, binary)),
    }
}

async fn measure(cli: &Cli, binary: &Path) -> Result<()> {
    let scratch = tempfile::Builder::new()
        .prefix("escurel-bench-")
        .tempdir()?;
    let folder = scratch.path().join("kb");
    let corpus = match &cli.corpus {
        Some(source) => corpus::copy(source, &folder, cli.seed)?,
        None => corpus::generate(&folder, cli.generate, cli.seed)?,
    };
    println!(
        "corpus: {} pages, {:.1} MB of markdown",
        corpus.pages,
        corpus.bytes as f64 / 1e6
    );

    let site = Site {
        binary,
        folder: &folder,
        home: scratch.path(),
        model: cli.model.as_deref(),
    };
    let primed = corpus.pages > EMBEDDED && site.prime()?;
    let (server, start) = starts(&site, &corpus).await?;
    println!("{}", report::start_line(&start, primed));
    let mut report = drive(cli, &server, &corpus).await?;
    match ops::edits(&server, &folder).await {
        Ok(latency) => report.edit_to_search = latency,
        Err(error) => report.failed("edit on disk to search", &error),
    }
    println!("\n{}", writes::HEAD);
    match writes::measure(&server, &folder, Duration::from_secs_f64(cli.seconds)).await {
        Ok(writes) => {
            writes
                .iter()
                .for_each(|write| println!("{}", writes::line(write)));
            report.writes = writes;
        }
        Err(error) => report.failed("durable writes", &error),
    }
    report.primed = primed;
    report.finish(start, &corpus, &folder);
    server.stop()?;
    busy(cli, &site, &corpus, &mut report).await?;
    report.print();
    if let Some(out) = &cli.json {
        std::fs::write(out, serde_json::to_vec_pretty(&report)?)?;
        println!("written: {}", out.display());
    }
    ensure!(
        report.failures.is_empty(),
        "{} measurements failed",
        report.failures.len()
    );
    Ok(())
}

/// With more pages than these, vectors are made up from those of some.
const EMBEDDED: usize = 10_000;

/// Where the product runs, and with what.
struct Site<'a> {
    binary: &'a Path,
    folder: &'a Path,
    home: &'a Path,
    model: Option<&'a Path>,
}

impl Site<'_> {
    fn serve(&self) -> Result<Server> {
        Server::start(self.binary, self.folder, self.home, self.model)
    }

    /// Puts vectors there that nobody embedded. False: there are to be none.
    fn prime(&self) -> Result<bool> {
        let Some(model) = self.model else {
            return Ok(false);
        };
        let prime = std::env::current_exe()?
            .with_file_name("examples")
            .join("prime");
        let mut command = Command::new(&prime);
        command.arg(self.folder).arg(model).env("HOME", self.home);
        let status = command
            .status()
            .with_context(|| format!("{} could not be started", prime.display()))?;
        ensure!(status.success(), "{} failed ({status})", prime.display());
        busy::forget(self.folder, true)?;
        Ok(true)
    }
}

/// First serve of an unknown folder, then a start that finds its index.
async fn starts(site: &Site<'_>, corpus: &Corpus) -> Result<(Server, Start)> {
    let begun = Instant::now();
    let first = site.serve()?;
    first.ready(Duration::from_secs(900)).await?;
    let first_s = begun.elapsed().as_secs_f64();
    let vectors_s = match site.model {
        Some(_) => Some(first.meaningful().await?.as_secs_f64()),
        None => None,
    };
    first.stop()?;
    let begun = Instant::now();
    let server = site.serve()?;
    server.ready(Duration::from_secs(900)).await?;
    let intact_s = begun.elapsed().as_secs_f64();
    if site.model.is_some() {
        server.meaningful().await?;
    }
    let pages_per_s = corpus.pages as f64 / first_s;
    Ok((
        server,
        Start {
            first_s,
            pages_per_s,
            intact_s,
            vectors_s,
        },
    ))
}

async fn drive(cli: &Cli, server: &Server, corpus: &Corpus) -> Result<Report> {
    let bare = Server::bare()?;
    bare.ready(Duration::from_secs(10)).await?;
    let mut report = Report::default();
    let span = Duration::from_secs_f64(cli.seconds);
    let mut answered = Vec::new();
    println!("{}", report::HEAD);
    let mut ops = ops::all(corpus, cli.seed);
    if cli.model.is_some() {
        ops.extend(ops::embedded(&ops));
    }
    for op in ops {
        if !op.name.contains(&cli.only) {
            continue;
        }
        match ops::measure(&op, server, &bare, span).await {
            Ok(figure) => {
                println!("{}", report::line(&figure));
                report.ops.push(figure);
                answered.push(op);
            }
            Err(error) => report.failed(op.name, &error),
        }
    }
    report.rss_start = server.resident();
    ops::mixed(&answered, server, cli.mixed).await?;
    report.rss_after_mixed = server.resident();
    report.rss_mapped = server.resident_mapped();
    report.rss_peak = server.resident_peak();
    bare.stop()?;
    Ok(report)
}

/// The same search, for one client and several, while the server is busy.
async fn busy(cli: &Cli, site: &Site<'_>, corpus: &Corpus, report: &mut Report) -> Result<()> {
    let mut ops = ops::all(corpus, cli.seed).into_iter();
    let Some(op) = ops.find(|op| op.name.starts_with("search") && op.name.contains(&cli.only))
    else {
        return Ok(());
    };
    let embeds = site.model.is_some() && !report.primed;
    let span = Duration::from_secs_f64(cli.seconds);
    for clients in [1, ops::CLIENTS] {
        busy::forget(site.folder, report.primed)?;
        let server = site.serve()?;
        match busy::measure(&server, &op, clients, embeds, span).await {
            Ok(figures) => report.busy.extend(figures),
            Err(error) => report.failed("search while busy", &error),
        }
        server.stop()?;
    }
    Ok(())
}

/// A connection of its own to a server.
async fn connect(server: &Server) -> Result<Client> {
    Client::connect(server.port).await
}
