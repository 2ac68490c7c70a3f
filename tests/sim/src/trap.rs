//! One thing that happens when the core has passed so many failpoints.

use std::io;

use escurel_store::Failpoints;
use parking_lot::Mutex;

type Spring = Box<dyn FnOnce(&'static str) -> io::Result<()> + Send>;

#[derive(Default)]
pub(crate) struct Trap {
    armed: Mutex<Option<(u32, Spring)>>,
}

impl Trap {
    pub fn arm(&self, passes: u32, spring: Spring) {
        *self.armed.lock() = Some((passes, spring));
    }

    /// True when it was still armed.
    pub fn disarm(&self) -> bool {
        self.armed.lock().take().is_some()
    }

    fn due(&self) -> Option<Spring> {
        let mut armed = self.armed.lock();
        match &mut *armed {
            Some((0, _)) => armed.take().map(|(_, spring)| spring),
            Some((passes, _)) => {
                *passes -= 1;
                None
            }
            None => None,
        }
    }
}

impl Failpoints for Trap {
    fn reach(&self, point: &'static str) -> io::Result<()> {
        match self.due() {
            Some(spring) => spring(point),
            None => Ok(()),
        }
    }
}
