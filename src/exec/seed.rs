//! Source of an execution's randomness.

use std::fmt;
use std::hash::Hasher;

use datafusion::common::{Result, exec_datafusion_err};
use rand::rngs::OsRng;
use rand::{RngCore, SeedableRng, TryRngCore};
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};
use siphasher::sip128::{Hasher128, SipHasher24};

/// Seed of one release. Whoever has it and the data can tell counterfeits from people, so it is never printed.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Seed([u8; 32]);

impl Seed {
    /// Returns a seed from the operating system's entropy.
    ///
    /// # Errors
    /// When the operating system has none.
    pub fn from_entropy() -> Result<Self> {
        let mut seed = [0; 32];
        OsRng
            .try_fill_bytes(&mut seed)
            .map_err(|error| exec_datafusion_err!("no randomness from the operating system: {error}"))?;
        Ok(Self(seed))
    }

    /// Returns the seed of a reproducible run.
    pub fn from_number(number: u64) -> Self {
        let mut seed = [0; 32];
        ChaCha20Rng::seed_from_u64(number).fill_bytes(&mut seed);
        Self(seed)
    }

    /// Returns the seed of a reproducible run, from a text of any length.
    pub fn from_text(text: &str) -> Self {
        let mut seed = [0; 32];
        for (number, half) in seed.chunks_exact_mut(16).enumerate() {
            let mut hasher = SipHasher24::new_with_keys(number as u64, text.len() as u64);
            hasher.write(text.as_bytes());
            let hash = hasher.finish128();
            half[..8].copy_from_slice(&hash.h1.to_le_bytes());
            half[8..].copy_from_slice(&hash.h2.to_le_bytes());
        }
        Self(seed)
    }

    /// Returns the seed itself, for generators that are not this one's.
    pub(crate) fn bytes(&self) -> [u8; 32] {
        self.0
    }

    /// Returns the seed that this secret gives to one occasion (a query's start, say): unpredictable without the secret.
    #[must_use]
    pub(crate) fn on_occasion(&self, occasion: u64) -> Self {
        let mut rng = ChaCha20Rng::from_seed(self.0);
        rng.set_stream(occasion);
        let mut seed = [0; 32];
        rng.fill_bytes(&mut seed);
        Self(seed)
    }

    /// Returns a random name for a release, from a seed with no other use.
    pub(crate) fn release_id(&self) -> String {
        self.0[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(crate) fn rng_of_cell(&self, cell: u32) -> ChaCha20Rng {
        let mut rng = self.rng();
        rng.set_stream(1 + u64::from(cell));
        rng
    }

    pub(crate) fn rng(&self) -> ChaCha20Rng {
        ChaCha20Rng::from_seed(self.0)
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(..)")
    }
}
