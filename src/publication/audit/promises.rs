//! What methods promise: of each release, and of the ledger.

use serde_json::{Map, Value};

use crate::risk::{Lineage, Promise};

/// What a method promises.
pub(super) struct Promises {
    /// Of every group of a release.
    pub(super) groups: Vec<Promise>,
    /// Of every group of a release that lacks sensitive columns.
    pub(super) sizes: Vec<Promise>,
    /// Of what the ledger remembers.
    pub(super) memory: Remembered,
    /// Of all rows together: the inverse of the greatest share that a sensitive value has.
    pub(super) whole: Option<usize>,
    /// Whether releases have no columns of groups.
    pub(super) hidden: bool,
    /// Whether they say, without groups, how many rows there are and how many of them are counterfeits.
    pub(super) counted: bool,
    /// Whether releases may lack quasi-identifiers that were agreed, and where groups are hidden any columns.
    pub(super) some_columns: bool,
    /// Whether they may lack sensitive columns, whose values are remembered.
    pub(super) some_values: bool,
}

/// What a ledger remembers from release to release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remembered {
    /// Nothing, or who was published.
    Nothing,
    /// Signatures of at least so many values.
    Signatures(usize, Lineage),
    /// Rings of at least so many people.
    Dealt(usize),
    /// Partners in so many worlds.
    Worlds(usize),
}

impl Promises {
    /// Those of a method with its parameters; `None` if nobody here knows them. Another method joins here.
    pub(super) fn of(method: &str, parameters: &Map<String, Value>) -> Option<Self> {
        let number = |name: &str| parameters.get(name).and_then(Value::as_u64).map(|n| n as usize);
        let word = |name: &str| parameters.get(name).and_then(Value::as_str);
        let is_set = |name: &str| parameters.get(name).and_then(Value::as_bool).unwrap_or(false);
        let alone = |groups: Vec<Promise>| Self {
            groups,
            sizes: Vec::new(),
            memory: Remembered::Nothing,
            whole: None,
            hidden: false,
            counted: false,
            some_columns: false,
            some_values: false,
        };
        Some(match method {
            "m_invariant" | "m_distinct" | "dynamic" => {
                let m = number("m")?;
                let lineage = match method {
                    "m_invariant" if word("assignment") == Some("drawn") => Lineage::Drawn,
                    "m_invariant" => Lineage::Invariant,
                    "dynamic" => Lineage::Distinct { close: true, disjoint: true },
                    // By a law, what takes several releases follows from it.
                    _ => Lineage::Distinct {
                        close: is_set("close_updates") || is_set("exact"),
                        disjoint: is_set("disjoint"),
                    },
                };
                let some_columns = method != "m_distinct" || is_set("exact");
                let some_values = method == "dynamic";
                let memory = Remembered::Signatures(m, lineage);
                let sizes = vec![Promise::Anonymous { k: m }];
                Self { memory, sizes, some_columns, some_values, ..alone(vec![Promise::Unique { m }]) }
            }
            "mondrian" => {
                let k = number("k").map(|k| Promise::Anonymous { k });
                let l = number("l").map(|l| match word("diversity") {
                    Some("distinct") => Promise::Distinct { l },
                    Some("entropy") => Promise::Entropy { l },
                    _ => Promise::Frequency { l },
                });
                let t = parameters.get("t").and_then(Value::as_f64).map(|t| Promise::Close { t });
                alone(k.into_iter().chain(l).chain(t).collect())
            }
            "anatomy" => alone(vec![Promise::Frequency { l: number("l")? }]),
            // Whole rings have l different values, each once.
            "muco" if is_set("equal") => {
                let l = number("l")?;
                Self { memory: Remembered::Dealt(l), whole: Some(l), hidden: true, counted: true, ..alone(Vec::new()) }
            }
            // Delta is a promise of tables that nobody keeps.
            "muco" => Self { hidden: true, ..alone(Vec::new()) },
            // That a release is consistent with all worlds cannot be told without the people's quasi-identifiers, which nobody keeps.
            "sequential" => {
                let l = number("l")?;
                Self {
                    memory: Remembered::Worlds(l),
                    // Each batch of people is diverse by itself, and so are whole rings.
                    whole: Some(l),
                    hidden: true,
                    counted: true,
                    some_columns: true,
                    ..alone(Vec::new())
                }
            }
            _ => return None,
        })
    }
}
