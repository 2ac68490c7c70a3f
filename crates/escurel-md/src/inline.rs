//! inline
