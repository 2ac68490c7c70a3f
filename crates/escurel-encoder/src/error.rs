use std::path::PathBuf;

/// Why an encoder could not be opened. The text names the file and the next step.
#[derive(Debug, thiserror::Error)]
pub enum EncoderError {
    #[error(
        "{}: cannot be read ({source}); fetch the model again or name the folder that holds it",
        file.display()
    )]
    Unreadable {
        file: PathBuf,
        source: std::io::Error,
    },
    #[error("{}: is damaged ({reason}); fetch the model again", file.display())]
    Damaged { file: PathBuf, reason: String },
    #[error(
        "{}: belongs to another model ({reason}); use the files of all-MiniLM-L6-v2",
        file.display()
    )]
    Unsuitable { file: PathBuf, reason: String },
}

impl EncoderError {
    /// The stable name of the reason.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "encoder_file_unreadable",
            Self::Damaged { .. } => "encoder_file_damaged",
            Self::Unsuitable { .. } => "encoder_model_unsuitable",
        }
    }
}
