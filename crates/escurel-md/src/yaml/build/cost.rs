//! What a header costs, and the copies that anchors and aliases make.

use serde_json::Value;

use super::{Broken, Builder, limits};

/// Values and bytes of text, copies included.
#[derive(Clone, Copy, Default)]
pub(super) struct Cost {
    pub nodes: usize,
    pub bytes: usize,
}

/// What an anchor names.
pub(super) struct Stored {
    value: Value,
    cost: Cost,
    height: usize,
}

impl Builder<'_, '_, '_> {
    pub(super) fn alias(&mut self, id: usize, at: usize) -> Result<(), Broken> {
        self.aliases += 1;
        if self.aliases > limits::ALIASES {
            return Err(self.broken(at, "The header uses anchors too often."));
        }
        let Some(stored) = self.anchors.get(&id) else {
            return Err(self.broken(at, "An alias stands inside of what it names."));
        };
        let (cost, height) = (stored.cost, stored.height);
        self.copy(cost, at)?;
        if self.stack.len() + height > limits::DEPTH {
            return Err(self.broken(at, "The header is nested too deeply."));
        }
        let value = self
            .anchors
            .get(&id)
            .map_or(Value::Null, |s| s.value.clone());
        if let Some(parent) = self.stack.last_mut() {
            parent.height = parent.height.max(height);
        }
        if self.expects_key() {
            let Value::String(name) = value else {
                return Err(self.broken(at, "A key is not a text."));
            };
            return self.key(name, at..at);
        }
        self.put(value, at)
    }

    pub(super) fn store(
        &mut self,
        anchor: usize,
        value: &Value,
        cost: Cost,
        height: usize,
        at: usize,
    ) -> Result<(), Broken> {
        self.copy(cost, at)?;
        self.anchors.insert(
            anchor,
            Stored {
                value: value.clone(),
                cost,
                height,
            },
        );
        Ok(())
    }

    fn copy(&mut self, cost: Cost, at: usize) -> Result<(), Broken> {
        self.copied += cost.bytes;
        if self.copied > limits::COPIED {
            return Err(self.broken(at, "Anchors make the header too large."));
        }
        self.spend(cost.nodes, cost.bytes, at)
    }

    pub(super) fn spend(&mut self, nodes: usize, bytes: usize, at: usize) -> Result<(), Broken> {
        self.cost.nodes += nodes;
        self.cost.bytes += bytes;
        if self.cost.nodes > limits::NODES {
            Err(self.broken(at, "The header has too many values."))
        } else {
            Ok(())
        }
    }
}
