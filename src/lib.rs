//! Anonymized publication inside Apache DataFusion.
pub mod error;
pub mod exec;
pub mod methods;
pub mod microdata;
pub mod release;
pub mod sql;
