//! Where counterfeits stand among the rows of a list, which nothing but chance decides.

/// One number for each list of each part of a bucket, as good as drawn. Parts are split on many threads, so the numbers follow from a random
/// one and the place, and not from a generator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Secret(Source);

#[derive(Debug, Clone, Copy)]
enum Source {
    Mixed(u64),
    #[cfg(test)]
    Chosen(&'static dyn Choose, u64),
}

/// Who chooses in the place of chance: whoever enumerates all choices, say.
#[cfg(test)]
pub(crate) trait Choose: std::fmt::Debug + Sync {
    /// A number below `n` for a list of a part; the same whenever it is asked.
    fn choose(&self, part: u64, list: usize, n: usize) -> usize;
}

impl Secret {
    /// Of a random number.
    pub(crate) fn mixed(random: u64) -> Self {
        Self(Source::Mixed(random))
    }

    #[cfg(test)]
    pub(crate) fn chosen(by: &'static dyn Choose) -> Self {
        Self(Source::Chosen(by, 0))
    }

    /// That of a bucket.
    pub(super) fn of_bucket(self, number: usize) -> Self {
        self.part(number as u64)
    }

    /// Those of the two halves of a part.
    pub(crate) fn halves(self) -> [Self; 2] {
        [self.part(u64::MAX), self.part(u64::MAX - 1)]
    }

    /// A number below `n`, which is not 0, for a list of this part.
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

/// A well-mixed number from a secret and a place (the finalizer of SplitMix64, twice).
fn mix(secret: u64, place: u64) -> u64 {
    let round = |mut x: u64| {
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    round(round(secret.wrapping_add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15))).wrapping_add(secret))
}
