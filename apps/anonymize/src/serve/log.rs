//! A line on standard error for whatever happens. Statements are there by their fingerprints: what readers ask for can be about people.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{SecondsFormat, Utc};
use datafusion::sql::sqlparser::tokenizer::Token;

/// Switch for lines about statements that succeed.
static STATEMENTS: AtomicBool = AtomicBool::new(true);

/// Sets up the log, and panics that tell their place only. Their messages may have parts of a statement.
pub(super) fn start(quiet: bool) {
    STATEMENTS.store(!quiet, Ordering::Relaxed);
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        line(&format!("panic at {place}"));
    }));
}

/// Writes a line. Nobody can be told when that fails.
pub(super) fn line(text: &str) {
    let now = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
    // In one piece: processes for statements write to the same file.
    let _ = std::io::stderr().lock().write_all(format!("{now} {text}\n").as_bytes());
}

/// Outcome of a statement.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub session: i32,
    pub user: &'a str,
    pub fingerprint: &'a str,
    pub milliseconds: u128,
    /// The code of its error.
    pub failed: Option<&'a str>,
}

impl Line<'_> {
    pub(super) fn write(&self) {
        let Line { session, user, fingerprint, milliseconds, failed } = self;
        if failed.is_none() && !STATEMENTS.load(Ordering::Relaxed) {
            return;
        }
        let end = failed.map_or_else(|| "ok".to_owned(), |code| format!("error {code}"));
        line(&format!("session {session} user {user:?} statement {fingerprint} {milliseconds} ms {end}"));
    }
}

/// Returns the same for statements that differ in their literals only.
pub(super) fn fingerprint(tokens: &[Token]) -> String {
    let mut hasher = blake3::Hasher::new();
    for token in tokens {
        match token {
            Token::Word(word) => hasher.update(word.value.to_ascii_lowercase().as_bytes()),
            Token::Number(..) => hasher.update(b"?"),
            // Literals, of whatever form.
            other if other.to_string().contains(['\'', '"', '$']) => hasher.update(b"?"),
            other => hasher.update(other.to_string().as_bytes()),
        };
        hasher.update(&[0]);
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::bounds::tokens;

    #[test]
    fn literals_do_not_count() {
        let of = |sql| fingerprint(&tokens(sql).expect("SQL"));
        let one = of("SELECT count(*) FROM t WHERE a = 'x' AND b = 12");
        assert_eq!(one, of("select COUNT(*)  from t\nwhere a = 'secret' and b = 3.5 -- why"));
        assert_ne!(one, of("SELECT count(*) FROM t WHERE a = 'x' AND c = 12"));
        assert_eq!(one.len(), 16);
    }
}
