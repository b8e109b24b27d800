//! What a release says to the publisher about worlds.

/// Whose sensitive value, and what travels with it, the rows of microdata carry in all worlds but the true one.
#[derive(Debug, Default)]
pub struct Worlds {
    /// Rows of the partners, row after row of the microdata.
    pub partners: Vec<u32>,
    /// Partners of a row.
    pub width: usize,
    /// Whether each row's person is new, so that the partners are to be remembered; empty where nothing is.
    pub is_new: Vec<bool>,
    /// A random number for each row, to seal its values with; empty where nothing is to be sealed.
    pub salts: Vec<i64>,
}
