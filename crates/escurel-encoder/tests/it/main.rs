//! The encoder from outside: against reference vectors where the model's files
//! are (`ESCUREL_EMBEDDING_MODEL_DIR`), and what it says about files that are not them.

mod files;
mod reference;
