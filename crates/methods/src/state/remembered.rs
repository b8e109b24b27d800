//! Sensitive columns that a release does not show: people have in them what they had when they were last published.
//!
//! So a release of fewer columns is one of all of them, of which a part is handed out, and says no more than that. It needs that a value
//! which is not shown cannot change meanwhile: where it can, nobody would know how often it did.

use datafusion::arrow::array::{Array, AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use rustc_hash::FxHashMap;

use super::Signatures;
use crate::error::{Error, Result, thousands};
use crate::microdata::{Microdata, parts_of};

/// A value as the texts of its parts; of one column, one.
type Parts = Vec<String>;

/// Gives everybody their earlier values in these columns, if they are sensitive.
///
/// # Errors
/// Refused where somebody was never published, where such a value can change, and where what results cannot follow from what was.
pub(super) fn fill(microdata: &mut Microdata, known: &Signatures, columns: &[String]) -> Result<()> {
    let sensitive = microdata.sensitive()?;
    let parts = parts_of(&sensitive.field)?;
    let names: Vec<&String> = match parts.is_empty() {
        true => vec![sensitive.field.name()],
        false => parts.iter().map(|part| part.name()).collect(),
    };
    let left_out: Vec<usize> = (0..names.len()).filter(|&place| columns.contains(names[place])).collect();
    let Some(&first) = left_out.first() else { return Ok(()) };
    let name = names[first].clone();
    if parts.is_empty() {
        // The value is the column.
        check_frozen(microdata, &name, |_, _| false)?;
        return each(microdata, known, &name, |_, last| Some(last));
    }
    let texts = cast(sensitive.domain.values(), &DataType::Utf8)?;
    let texts: &StringArray = texts.as_string();
    let values = (0..texts.len()).map(|code| match texts.is_null(code) {
        true => Ok(Parts::new()),
        false => serde_json::from_str(texts.value(code)).map_err(|_| Error::internal("a value that has no parts")),
    });
    let values = values.collect::<Result<Vec<Parts>>>()?;
    let same = |a: u32, b: u32| {
        let part = |code: u32, place: usize| values[code as usize].get(place);
        left_out.iter().all(|&place| part(a, place) == part(b, place))
    };
    check_frozen(microdata, &name, same)?;
    let code_of: FxHashMap<&Parts, u32> = values.iter().zip(0..).collect();
    let mut filled: FxHashMap<(u32, u32), Option<u32>> = FxHashMap::default();
    each(microdata, known, &name, |own, last| {
        *filled.entry((own, last)).or_insert_with(|| {
            let mut value = values[own as usize].clone();
            for &place in &left_out {
                value.get_mut(place)?.clone_from(values[last as usize].get(place)?);
            }
            code_of.get(&value).copied()
        })
    })
}

/// Gives everybody the value that they were published with in this period already. It counts those who have another
/// one in the microdata: a value that changed meanwhile changes with the next period. If such a snapshot were
/// refused, its absence would tell readers that somebody's own value had changed.
pub(super) fn hold(microdata: &mut Microdata, known: &mut Signatures) {
    let last = |row: usize| {
        known.steps_of(row).filter(|steps| *steps == 0)?;
        let (signature, label) = known.of(row).zip(known.label_of(row))?;
        signature.get(label as usize).copied()
    };
    let mut held = 0;
    let codes = microdata.sensitive_codes.iter().enumerate().map(|(row, code)| {
        let holds = last(row).unwrap_or(code);
        held += usize::from(holds != code);
        holds
    });
    let codes = codes.collect();
    if held > 0 {
        microdata.sensitive_codes = codes;
    }
    known.held = held;
}

/// # Errors
/// Where a change is possible that is not of `same` values.
fn check_frozen(microdata: &Microdata, name: &str, same: impl Fn(u32, u32) -> bool) -> Result<()> {
    let pairs = microdata.updates.iter().flat_map(|updates| &updates.pairs);
    match pairs.into_iter().any(|&(from, to)| from != to && !same(from, to)) {
        false => Ok(()),
        true => Err(Error::refused(format!(
            "the INSERT does not name column {name}, whose values can change by `updates`: how often they did would not be known when they are published \
             again; name it, and hand out a query of the release that leaves it out"
        ))),
    }
}

/// Sets every row's value by its own, if given, and the last published one.
fn each(
    microdata: &mut Microdata,
    known: &Signatures,
    name: &str,
    mut value: impl FnMut(u32, u32) -> Option<u32>,
) -> Result<()> {
    let (mut new, mut illegal) = (0, 0);
    let filled = microdata.sensitive_codes.iter().enumerate().map(|(row, code)| {
        let last = known.of(row).zip(known.label_of(row));
        let Some(last) = last.and_then(|(signature, label)| signature.get(label as usize).copied()) else {
            new += 1;
            return code;
        };
        value(code, last).unwrap_or_else(|| {
            // Of somebody who was published in this period, whatever changed is held.
            if known.steps_of(row) == Some(0) {
                return last;
            }
            illegal += 1;
            code
        })
    });
    microdata.sensitive_codes = filled.collect();
    if new > 0 {
        return Err(Error::refused(format!(
            "{} people of the INSERT were in no release yet, and it does not name column {name}: what they have in it decides with whom they are in a \
             group; name it, and hand out a query of the release that leaves it out",
            thousands(new)
        )));
    }
    match illegal {
        0 => Ok(()),
        _ => Err(Error::refused(format!(
            "the sensitive value of {} returning rows cannot have followed from the one that they were published with last; correct these rows",
            thousands(illegal)
        ))),
    }
}
