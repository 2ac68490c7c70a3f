//! The store on a file system: page files in place, state beside them.

mod lock;
mod open;
mod pages;
mod paths;
mod repair;
mod replace;
mod root;
mod scan;
mod sys;
mod temp;
mod unrecorded;
mod watch;

pub use lock::{Holder, Lock};
pub use open::FsStore;
pub use paths::{Kept, Layout, Paths};
pub use unrecorded::Unrecorded;
pub use watch::{Changed, Watch};
