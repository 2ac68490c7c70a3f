//! The trait that a tool implements and its type-erased form.
//!
//! Invariant: an [`Entry`] adds nothing to its [`Tool`]; it only forgets the type.

use escurel_access::Caller;
use escurel_core::{Code, Kb, Refusal};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::schema;
use crate::spec::Spec;

/// A tool: the type is its arguments, its doc comment the description.
pub trait Tool: DeserializeOwned + JsonSchema {
    const SPEC: Spec;
    type Output: Serialize + JsonSchema;
    fn call(self, cx: &Call<'_>) -> Result<Self::Output, Refusal>;
}

/// What a handler works with.
pub struct Call<'a> {
    pub kb: &'a Kb,
    pub caller: &'a Caller,
}

pub struct Entry {
    pub spec: Spec,
    pub(crate) input: fn() -> Value,
    pub(crate) output: fn() -> Value,
    pub(crate) run: fn(&Call<'_>, Value) -> Result<String, Refusal>,
}

pub const fn entry<T: Tool>() -> Entry {
    Entry {
        spec: T::SPEC,
        input: schema::input::<T>,
        output: schema::output::<T::Output>,
        run: run::<T>,
    }
}

fn run<T: Tool>(cx: &Call<'_>, arguments: Value) -> Result<String, Refusal> {
    let tool: T = serde_json::from_value(arguments)
        .map_err(|e| Refusal::new(Code::InvalidArgument, format!("arguments: {e}.")))?;
    let output = tool.call(cx)?;
    serde_json::to_string(&output).map_err(|e| {
        Refusal::new(
            Code::Internal,
            format!("The answer could not be written as JSON: {e}."),
        )
    })
}
