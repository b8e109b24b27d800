//! The SQL that makes of such a column what it stands for.

use datafusion::common::utils::quote_identifier;

use super::numbers::Commas;
use super::{Kind, TextOrder};

impl TextOrder {
    /// Says of a column what is wrong with its order, and what to anonymize instead. Has no values of the data.
    pub fn notice(&self, function: &str, column: &str) -> String {
        let what = match &self.kind {
            Kind::Numbers(_) => "numbers",
            Kind::Dates(_) => "dates",
            Kind::Bands(_) => "bands of numbers",
        };
        let unanswered = if self.unanswered { ", and texts of no answer" } else { "" };
        let strays = if self.strays { ", and a few that are none" } else { "" };
        let name = quote_identifier(column);
        let expression = self.expression(&name);
        format!(
            "{function}: column {column} has {what} as texts{strays}{unanswered}, and their order is that of texts, letter by letter, so that its ranges \
             and neighbours are not what they seem. Instead of the table t, write (SELECT * REPLACE ({expression} AS {name}) FROM t)"
        )
    }

    /// Says that a few texts make a column no numbers, and the cure. `None` of other columns.
    pub fn remark(&self, column: &str) -> Option<String> {
        let expression = || self.expression(&quote_identifier(column));
        self.strays.then(|| format!("numbers, but for a few texts, which {} makes NULL", expression()))
    }

    /// Returns the column as what it stands for. Of texts that are no answer it makes NULL.
    pub(super) fn expression(&self, name: &str) -> String {
        let answered = |expression: String| match self.unanswered {
            true => format!("CASE WHEN regexp_like({name}, '[0-9]') THEN {expression} END"),
            false => expression,
        };
        match &self.kind {
            Kind::Numbers(style) => {
                let data_type = if style.whole { "BIGINT" } else { "DOUBLE" };
                match style.commas {
                    Commas::None => format!("TRY_CAST({name} AS {data_type})"),
                    Commas::Thousands => {
                        format!("TRY_CAST(regexp_replace({name}, '[^0-9.-]', '', 'g') AS {data_type})")
                    }
                    Commas::Decimal => format!(
                        "TRY_CAST(replace(regexp_replace({name}, '[^0-9,-]', '', 'g'), ',', '.') AS {data_type})"
                    ),
                }
            }
            Kind::Dates(pattern) => answered(format!("to_date({name}, '{}')", pattern.format())),
            Kind::Bands(Some(padding)) => {
                let (digits, zeros) = (padding.digits, "0".repeat(padding.digits - 1));
                let padded = format!(
                    r"regexp_replace(regexp_replace({name}, '([0-9]+)', '{zeros}\1', 'g'), '0*([0-9]{{{digits}}})', '\1', 'g')"
                );
                answered(match padding.below {
                    true => format!(r"regexp_replace({padded}, '^ *(<|≤|under|below|less than|up to)', ' \1', 'i')"),
                    false => padded,
                })
            }
            Kind::Bands(None) => {
                format!(
                    "with_metadata({name}, 'anonymize.order', '[\"first value\", \"second value\", \"and so on\"]')"
                )
            }
        }
    }
}
