//! Places of counterfeits among the rows of a list, which only chance decides.

/// Number for each list of each part of a bucket, as good as drawn. Parts are split on many threads, so the numbers
/// follow from a random one and the place, and not from a generator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Secret(Source);

#[derive(Debug, Clone, Copy)]
enum Source {
    Mixed(u64),
    #[cfg(test)]
    Chosen(&'static dyn Choose, u64),
}

/// Chooser in the place of chance: an enumeration of all choices, say.
#[cfg(test)]
pub(crate) trait Choose: std::fmt::Debug + Sync {
    /// Returns a number below `n` for a list of a part; the same whenever it is asked.
    fn choose(&self, part: u64, list: usize, n: usize) -> usize;
}

impl Secret {
    /// Makes the secret of a random number.
    pub(crate) fn mixed(random: u64) -> Self {
        Self(Source::Mixed(random))
    }

    #[cfg(test)]
    pub(crate) fn chosen(by: &'static dyn Choose) -> Self {
        Self(Source::Chosen(by, 0))
    }

    /// Returns the secret of a bucket.
    pub(super) fn of_bucket(self, number: usize) -> Self {
        self.part(number as u64)
    }

    /// Returns the secrets of the two halves of a part.
    pub(crate) fn halves(self) -> [Self; 2] {
        [self.part(u64::MAX), self.part(u64::MAX - 1)]
    }

    /// Returns a number below `n`, which is not 0, for a list of this part.
    #[inline]
    pub(crate) fn of_list(self, list: usize, n: usize) -> usize {
        match self.0 {
            Source::Mixed(secret) => (mix(secret, list as u64) % n as u64) as usize,
            #[cfg(test)]
            Source::Chosen(by, part) => by.choose(part, list, n),
        }
    }

    fn part(self, place: u64) -> Self {
        Self(match self.0 {
            Source::Mixed(secret) => Source::Mixed(mix(secret, place)),
            #[cfg(test)]
            Source::Chosen(by, part) => Source::Chosen(by, mix(part, place)),
        })
    }
}

/// Returns a well-mixed number from a secret and a place (the finalizer of SplitMix64, twice).
fn mix(secret: u64, place: u64) -> u64 {
    let round = |mut x: u64| {
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    round(round(secret.wrapping_add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15))).wrapping_add(secret))
}
