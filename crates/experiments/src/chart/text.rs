//! Text of a chart: how wide it will be, and how it is broken into lines.

/// Estimates the width of a text in pixels: as in DejaVu Sans, for few fonts are wider.
pub(super) fn width(text: &str, size: f64, bold: bool) -> f64 {
    let ems: f64 = text.chars().map(ems).sum();
    ems * size * if bold { 1.12 } else { 1.0 }
}

fn ems(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '\'' => 0.28,
        ' ' | ',' | '.' | ':' | ';' | '|' | 'I' => 0.34,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' | '!' => 0.4,
        'm' | 'M' | 'W' | '%' | '—' | '→' => 0.97,
        'w' | 'N' | 'O' | 'Q' | 'D' | 'H' | 'U' | 'G' | '<' | '>' | '=' | '+' | '−' | '×' | '≤' | '≥' => 0.84,
        'A' | 'B' | 'C' | 'E' | 'F' | 'J' | 'K' | 'L' | 'P' | 'R' | 'S' | 'T' | 'V' | 'X' | 'Y' | 'Z' => 0.7,
        c if c.is_ascii() || (c as u32) < 0x2e80 => 0.64,
        _ => 1.0,
    }
}

/// Returns the lines of at most this width, if no word is wider.
pub(super) fn lines(text: &str, size: f64, bold: bool, room: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let line = format!("{} {word}", lines[last]).trim_start().to_owned();
        if lines[last].is_empty() || width(&line, size, bold) <= room {
            lines[last] = line;
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Cuts a text to the part that has room.
pub(super) fn cut(text: &str, size: f64, room: f64) -> String {
    let mut text = text.to_owned();
    if width(&text, size, false) <= room {
        return text;
    }
    while !text.is_empty() && width(&text, size, false) + size > room {
        text.pop();
    }
    format!("{}…", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_broken_and_cut() {
        assert_eq!(lines("one two three", 10.0, false, 50.0), ["one two", "three"]);
        assert_eq!(lines("unbreakable", 10.0, false, 5.0), ["unbreakable"]);
        assert_eq!(cut("short", 10.0, 100.0), "short");
        let cut = cut("far too long for its room", 10.0, 100.0);
        assert!(cut.ends_with('…') && width(&cut, 10.0, false) <= 100.0, "{cut}");
    }
}
