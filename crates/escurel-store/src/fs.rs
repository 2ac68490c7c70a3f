//! The store on a file system: page files in place, state beside them.

mod lock;
mod open;
mod pages;
mod paths;
mod replace;
mod root;
mod scan;
mod sys;
mod temp;
mod watch;

pub use lock::{Holder, Lock};
pub use open::FsStore;
pub use paths::{Layout, Paths};
pub use watch::{Changed, Watch};
