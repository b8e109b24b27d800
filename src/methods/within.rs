//! A method applied to each value of a column independently, in parallel.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;

use super::{Method, Monitor};
use crate::error::{Error, Result, thousands};
use crate::microdata::{Ledger, Microdata, Part};
use crate::release::{Groups, Release};

/// Every part has a generator of its own, drawn in the order of the parts, so threads do not matter; and every part's result
/// has passed the method's own check.
pub(super) fn anonymize(
    method: &Method,
    microdata: Microdata,
    ledger: &Ledger,
    monitor: &Monitor,
    rng: &mut impl Rng,
) -> Result<Release> {
    let parts = monitor.phase("parts", || Ok(microdata.parts(ledger)))?;
    let number = parts.len();
    let work: Vec<(Part, ChaCha20Rng)> =
        parts.into_iter().map(|part| (part, ChaCha20Rng::from_seed(rng.random()))).collect();
    let releases: Vec<Result<(u32, Vec<u32>, Release)>> = work
        .into_par_iter()
        .map(|(Part { code, rows, microdata, ledger }, mut rng)| {
            let release = method.anonymize_whole(microdata, &ledger, monitor, &mut rng)?;
            Ok((code, rows, release))
        })
        .collect();
    let failed = releases.iter().filter(|release| matches!(release, Err(Error::Refused(_)))).count();
    let name = microdata.within.as_ref().map_or("", |(attribute, _)| attribute.field.name());
    let mut groups = Groups { starts: vec![0], ..Groups::default() };
    let mut withheld = 0;
    for release in releases {
        let (code, rows, release) = release.map_err(|error| match error {
            Error::Refused(message) => Error::refused(format!(
                "{} of the {} parts by {name} cannot be released; the first of them: {message}",
                thousands(failed),
                thousands(number)
            )),
            other => other,
        })?;
        groups.append(release.groups, &rows, code);
        withheld += release.withheld;
    }
    Ok(Release { microdata, groups, withheld })
}
