//! A line on the terminal while a release is in the making.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use datafusion_anonymize::{Progress, Step};
use parking_lot::Mutex;

/// Quick queries show nothing, and slow ones no flicker.
const PAUSE: Duration = Duration::from_millis(200);

/// Shows progress on standard error, if that is a terminal; and what must not pass without a word, wherever that goes.
pub(super) fn on_stderr() -> Progress {
    let is_terminal = std::io::stderr().is_terminal();
    let line = Mutex::new(Line { since: None, shown: false });
    Progress::new(move |step| {
        if let Some(notice) = notice(step) {
            let clear = if is_terminal { "\r\x1b[2K" } else { "" };
            let _ = writeln!(std::io::stderr().lock(), "{clear}{notice}");
            return;
        }
        if !is_terminal {
            return;
        }
        let mut line = line.lock();
        if let Some(text) = line.next(step, Instant::now()) {
            // A terminal that is gone is no reason to stop publishing.
            let _ = write!(std::io::stderr().lock(), "\r\x1b[2K{text}");
        }
    })
}

fn notice(step: Step) -> Option<String> {
    match step {
        Step::Withheld { rows, of } => Some(format!(
            "notice: {rows} of {of} rows are withheld from this release, because the new rows were not eligible and on_ineligible is \
             'withhold'; they stay new for the next one"
        )),
        _ => None,
    }
}

#[derive(Debug)]
struct Line {
    /// Time when something was shown last, or the query began.
    since: Option<Instant>,
    shown: bool,
}

impl Line {
    /// Returns the text to show now, if any; an empty text clears the line.
    fn next(&mut self, step: Step, now: Instant) -> Option<String> {
        if step == Step::Done {
            self.since = None;
            return std::mem::take(&mut self.shown).then(String::new);
        }
        let since = *self.since.get_or_insert(now);
        // Counts come often, phases seldom.
        let seldom = !matches!(step, Step::Read { .. });
        if now.duration_since(since) < PAUSE && !(self.shown && seldom) {
            return None;
        }
        self.since = Some(now);
        self.shown = true;
        Some(match step {
            Step::Read { rows } => format!("{rows} rows read"),
            Step::Phase(phase) => format!("anonymizing: {phase}"),
            Step::Written { rows, of } => format!("{} {rows} of {of} rows written", bar(rows, of)),
            Step::Measured { done, of } => format!("{} {done} of {of} settings measured", bar(done, of)),
            Step::Computing(function) => format!("{function}: computing"),
            Step::Announcing => "publishing".to_owned(),
            Step::Withheld { .. } | Step::Published { .. } | Step::Done => String::new(),
        })
    }
}

fn bar(done: usize, of: usize) -> String {
    const WIDTH: usize = 24;
    let share = if of == 0 { 1.0 } else { (done as f64 / of as f64).min(1.0) };
    let full = (share * WIDTH as f64) as usize;
    format!("[{}{}] {:3.0} %", "#".repeat(full), ".".repeat(WIDTH - full), 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_takes_long_is_shown_and_cleared() {
        let mut line = Line { since: None, shown: false };
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        assert_eq!(line.next(Step::Read { rows: 1 }, start), None);
        assert_eq!(line.next(Step::Phase("split"), after(50)), None);
        assert_eq!(line.next(Step::Done, after(60)), None);
        assert_eq!(line.next(Step::Read { rows: 1 }, after(100)), None);
        assert_eq!(line.next(Step::Read { rows: 5 }, after(350)).as_deref(), Some("5 rows read"));
        assert_eq!(line.next(Step::Read { rows: 6 }, after(360)), None);
        assert_eq!(line.next(Step::Phase("split"), after(370)).as_deref(), Some("anonymizing: split"));
        assert_eq!(
            line.next(Step::Written { rows: 5, of: 10 }, after(380)).as_deref(),
            Some("[############............]  50 % 5 of 10 rows written")
        );
        assert_eq!(bar(0, 0), "[########################] 100 %");
        assert_eq!(line.next(Step::Done, after(390)).as_deref(), Some(""));
        assert_eq!(line.next(Step::Done, after(400)), None);
    }
}
