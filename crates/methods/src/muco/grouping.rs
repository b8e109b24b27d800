//! Groups of rows that cover for each other.
//!
//! Mondrian's cuts part the table where rows lie, as long as in every part no sensitive value makes up more than `1/l` of the rows.
//! Inside a part, rows are dealt by m-invariance's assignment with `m = l`: at least `l` rows to a group, all with different values,
//! drawn without a look at where they lie. Or cuts are [fair](super::super::mondrian), and the rings of their parts are the groups.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::microdata::{Microdata, of_width};
use crate::mondrian::{self, Cuts, Source};
use crate::release::Groups;
use crate::rings::Worlds;
use crate::{Monitor, assignment};

/// Returns the groups that are rings of leaves which are cut by all worlds: neither cuts nor groups tell anything of values but that those of a group differ.
pub(super) fn fair(
    microdata: &Microdata,
    l: usize,
    cuts: Cuts,
    source: &impl Source,
    monitor: &Monitor,
) -> Result<Groups> {
    let rings = mondrian::leaves_by(microdata, l, Worlds::Shifts, cuts, source, monitor)?.rings;
    if !of_width!(&microdata.sensitive_codes, codes => rings.are_rings(microdata.rows, l, codes)) {
        return Err(Error::internal("rings that are none; nothing was published"));
    }
    let sensitive = microdata.sensitive_of(&rings.people);
    let starts = std::iter::once(0).chain(rings.ends.iter().copied()).collect();
    Ok(Groups { starts, members: rings.people, sensitive, ..Groups::default() })
}

/// Deals parts in the order of their places, each with its own random numbers.
pub(super) fn group(
    microdata: &Microdata,
    l: usize,
    cuts: Cuts,
    secret: [u8; 32],
    monitor: &Monitor,
) -> Result<Groups> {
    let (starts, mut rows) = mondrian::leaves(microdata, l, cuts, monitor)?;
    let mut parts = Vec::with_capacity(starts.len());
    let mut left = rows.as_mut_slice();
    for part in starts.windows(2) {
        let (rows, after) = left.split_at_mut((part[1] - part[0]) as usize);
        parts.push(rows);
        left = after;
    }
    let dealt: Vec<Result<(Vec<u32>, Vec<u32>)>> = parts
        .into_par_iter()
        .enumerate()
        .with_min_len(16)
        .map(|(number, rows)| {
            monitor.check()?;
            let mut rng = ChaCha20Rng::from_seed(secret);
            rng.set_stream(number as u64);
            // Cuts keep the order of rows, which is that of a keyed hash.
            let mut lines = of_width!(&microdata.sensitive_codes, codes => assignment::by_value(rows, codes));
            let (mut members, mut sizes) = (Vec::new(), Vec::new());
            assignment::deal(&mut lines, l, &mut rng, |rows| {
                members.extend_from_slice(rows);
                sizes.push(rows.len() as u32);
            })?;
            Ok((members, sizes))
        })
        .collect();
    let mut groups = Groups { starts: vec![0], ..Groups::default() };
    groups.members.reserve_exact(microdata.rows);
    for part in dealt {
        let (members, sizes) = part?;
        groups.members.extend(members);
        for size in sizes {
            let end = groups.starts.last().map_or(size, |start| start + size);
            groups.starts.push(end);
        }
    }
    if groups.members.len() != microdata.rows {
        return Err(Error::internal("groups that lack rows"));
    }
    groups.sensitive = microdata.sensitive_of(&groups.members);
    Ok(groups)
}
