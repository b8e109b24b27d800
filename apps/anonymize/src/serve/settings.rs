//! Settings that drivers and programs make when they connect. None of them changes what is answered; those of the server are not here.

use std::collections::BTreeMap;

use super::errors::Failure;

const LONGEST: usize = 256;

/// Settings that are taken and told again, with what they are at first. Some say what is, whatever is set.
const KNOWN: [(&str, &str); 36] = [
    ("application_name", ""),
    ("bytea_output", "hex"),
    ("client_encoding", "UTF8"),
    ("client_min_messages", "notice"),
    ("datestyle", "ISO, MDY"),
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "on"),
    ("escape_string_warning", "on"),
    ("extra_float_digits", "1"),
    ("geqo", "on"),
    ("idle_in_transaction_session_timeout", "0"),
    ("in_hot_standby", "off"),
    ("integer_datetimes", "on"),
    ("intervalstyle", "postgres"),
    ("is_superuser", "off"),
    ("jit", "off"),
    ("lc_collate", "C"),
    ("lc_ctype", "C"),
    ("lc_messages", "C"),
    ("lock_timeout", "0"),
    ("max_identifier_length", "63"),
    ("max_index_keys", "32"),
    ("row_security", "on"),
    ("search_path", "public"),
    ("server_encoding", "UTF8"),
    ("server_version", VERSION),
    ("server_version_num", "160006"),
    ("session_authorization", ""),
    ("standard_conforming_strings", "on"),
    ("statement_timeout", "0"),
    ("synchronize_seqscans", "on"),
    ("timezone", "UTC"),
    ("transaction_isolation", "read committed"),
    ("transaction_read_only", "on"),
    ("work_mem", "4MB"),
    ("xmloption", "content"),
];

/// Version of PostgreSQL whose catalog is served, and which programs take this for.
pub(super) const VERSION: &str = "16.6";

/// Settings that nobody can change, though setting them to what they are is no error.
const FIXED: &str = "\
    in_hot_standby integer_datetimes is_superuser max_identifier_length max_index_keys server_encoding \
    server_version server_version_num session_authorization standard_conforming_strings transaction_read_only";

#[derive(Debug, Default)]
pub(super) struct Settings(BTreeMap<&'static str, String>);

fn known(name: &str) -> Option<(&'static str, &'static str)> {
    KNOWN.iter().find(|(known, _)| *known == name).copied()
}

fn unknown(name: &str) -> Failure {
    Failure::new("42704", format!("there is no setting {name} for readers"))
}

impl Settings {
    /// Returns all that there are, with what they are at first.
    pub(super) fn known() -> impl Iterator<Item = (&'static str, &'static str)> {
        KNOWN.into_iter()
    }

    /// # Errors
    /// When readers have no such setting, or it cannot be what it is to be.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let Some((name, first)) = known(name) else { return Err(unknown(name)) };
        let value = value.trim();
        if value.len() > LONGEST {
            return Err(Failure::new("22023", format!("the value of {name} has at most {LONGEST} bytes")));
        }
        if value.eq_ignore_ascii_case("default") {
            self.0.remove(name);
            return Ok(());
        }
        match name {
            _ if FIXED.split(' ').any(|fixed| fixed == name) && !value.eq_ignore_ascii_case(first) => {
                return Err(Failure::new("55P02", format!("setting {name} cannot be changed")));
            }
            "client_encoding" => {
                let plain: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
                if !["utf8", "unicode"].contains(&plain.to_ascii_lowercase().as_str()) {
                    return Err(
                        Failure::new("22023", "texts are sent in UTF8 only").hint("SET client_encoding = 'UTF8'")
                    );
                }
            }
            // Times are sent with their offset, and that is 0.
            "timezone" => {}
            _ => {
                self.0.insert(name, value.to_owned());
            }
        }
        Ok(())
    }

    /// Fails when readers have no such setting.
    pub(super) fn get(&self, name: &str) -> Result<&str, Failure> {
        let (name, first) = known(name).ok_or_else(|| unknown(name))?;
        Ok(self.0.get(name).map_or(first, String::as_str))
    }

    /// Fails when readers have no such setting.
    pub(super) fn reset(&mut self, name: Option<&str>) -> Result<(), Failure> {
        match name {
            Some(name) => drop(self.0.remove(known(name).ok_or_else(|| unknown(name))?.0)),
            None => self.0.clear(),
        }
        Ok(())
    }

    /// Returns the milliseconds that the reader gives a statement; `None` for as many as the server does.
    pub(super) fn statement_timeout(&self) -> Option<u64> {
        let text = self.0.get("statement_timeout")?.to_ascii_lowercase();
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
        let number: u64 = digits.parse().ok()?;
        let milliseconds = match text[digits.len()..].trim() {
            "" | "ms" => number,
            "s" => number.saturating_mul(1_000),
            "min" => number.saturating_mul(60_000),
            "h" => number.saturating_mul(3_600_000),
            _ => return None,
        };
        (milliseconds > 0).then_some(milliseconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_settings_only() {
        let mut settings = Settings::default();
        settings.set("application_name", "psql").expect("fine");
        assert_eq!(settings.get("application_name"), Ok("psql"));
        settings.reset(None).expect("fine");
        assert_eq!(settings.get("application_name"), Ok(""));
        for name in ["datafusion.execution.batch_size", "anonymize.id", "role", "temp_directory"] {
            assert_eq!(settings.set(name, "1").expect_err(name).code(), "42704");
            assert_eq!(settings.get(name).expect_err(name).code(), "42704");
        }
        assert!(settings.set("client_encoding", "LATIN1").is_err());
        assert!(settings.set("client_encoding", "utf-8").is_ok());
        assert!(settings.set("is_superuser", "on").is_err());
        assert!(settings.set("standard_conforming_strings", "on").is_ok());
        assert!(settings.set("application_name", &"x".repeat(300)).is_err());
    }

    #[test]
    fn timeouts() {
        let mut settings = Settings::default();
        for (text, expected) in
            [("0", None), ("250", Some(250)), ("2s", Some(2_000)), ("1 min", Some(60_000)), ("x", None)]
        {
            settings.set("statement_timeout", text).expect("fine");
            assert_eq!(settings.statement_timeout(), expected, "{text}");
        }
    }
}
