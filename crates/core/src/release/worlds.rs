//! Facts about worlds that a release tells the publisher.

use siphasher::sip::SipHasher24;

/// Sensitive values, and values that travel with them, in all worlds but the true one.
#[derive(Debug, Default)]
pub struct Worlds {
    /// Rows of the partners, row after row of the microdata.
    pub partners: Vec<u32>,
    /// Partners of a row.
    pub width: usize,
    /// True for each row whose person is new, so that the partners are remembered; empty where nothing is.
    pub is_new: Vec<bool>,
    /// Random numbers of rows, to seal their values with; none where nothing is to be sealed.
    pub salts: Option<Salts>,
}

/// A random number for each row, made when it is asked for: ten million take room.
#[derive(Clone, Copy)]
pub struct Salts(SipHasher24);

impl Salts {
    /// Makes salts from a key, which is drawn and secret.
    pub fn new(key: [u64; 2]) -> Self {
        Self(SipHasher24::new_with_keys(key[0], key[1]))
    }

    /// Returns the salt of a row.
    pub fn of(&self, row: u32) -> i64 {
        self.0.hash(&row.to_le_bytes()) as i64
    }
}

/// Without the key.
impl std::fmt::Debug for Salts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Salts")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn salts_are_of_a_row_and_a_key() {
        let salts = [[1, 2], [1, 3]].map(Salts::new);
        let mut all: Vec<i64> = salts.iter().flat_map(|salts| (0..1000).map(|row| salts.of(row))).collect();
        assert_eq!(all[7], salts[0].of(7));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 2000);
        assert_eq!(format!("{:?}", salts[0]), "Salts");
    }
}
