//! Finds the texts of refusals in the sources, to compare them with tests. A case of `tests/cures` runs the cure of
//! each, or `tests/cures/without.txt` says why none does.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use super::cases;
use crate::integration::support::path;

/// Names of macros, constructors and functions that refuse; functions of a file begin with "refuse".
const REFUSING: [&str; 8] =
    ["refusal", "refused", "refuse", "unfit", "plan_err", "exec_err", "plan_datafusion_err", "exec_datafusion_err"];

/// Files of which every text is part of a refusal.
const WHOLE: [&str; 3] =
    ["crates/core/src/error/cures.rs", "crates/core/src/error/ranges.rs", "crates/core/src/microdata/updates.rs"];

/// Programs, of which flags are refused rather than SQL: `shell.rs`, `served.rs`, `cluster.rs` and `experiments.rs` test them.
const PROGRAMS: [&str; 4] = ["src/shell/", "src/serve/", "src/distributed/", "src/experiments/"];

/// Functions that make advice for refusals of other files.
const ADVISING: [&str; 4] = ["loose_text", "several_text", "one_row_each", "way_out"];

/// Fewest words of a refusal: a shorter text is an example, or the name of an argument.
const WORDS: usize = 3;

/// Word or text of a source, with its place.
#[derive(Clone)]
struct Token {
    text: String,
    is_literal: bool,
    line: usize,
}

/// A case provokes every text of a refusal, or a list has it. Cases run the cures; the list is of those without, and nothing old stays in it.
#[test]
fn every_refusal_has_its_cure_tested() {
    let mut texts = BTreeMap::new();
    let sources = sources();
    let definitions = definitions(&sources);
    for (file, tokens) in sources.iter().filter(|(file, _)| !PROGRAMS.iter().any(|folder| file.starts_with(folder))) {
        for (line, text) in refusals(file, tokens, &definitions) {
            texts.entry(text).or_insert_with(|| format!("{file}:{line}"));
        }
    }
    assert!(texts.len() > 300, "only {} texts were found", texts.len());
    let said: Vec<String> = cases::all().into_iter().map(|case| case.says).collect();
    let without = without();
    let mut wrong = Vec::new();
    for (text, place) in &texts {
        let tested = said.iter().any(|said| fits(said, text));
        match (tested, without.contains(text)) {
            (false, false) => wrong.push(format!("{place}: no case has it, nor without.txt: {text}")),
            (true, true) => wrong.push(format!("{place}: a case has it, so without.txt need not: {text}")),
            _ => {}
        }
    }
    let gone = without.iter().filter(|text| !texts.contains_key(*text));
    wrong.extend(gone.map(|text| format!("without.txt: no refusal says so any more: {text}")));
    assert!(wrong.is_empty(), "{} refusals:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns the lines of the list, without reasons.
fn without() -> BTreeSet<String> {
    let text = std::fs::read_to_string(path("tests/cures/without.txt")).unwrap();
    assert!(text.starts_with("# "), "the list begins with a reason");
    text.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")).map(str::to_owned).collect()
}

/// Returns true if a message has the pieces of a text in order.
fn fits(message: &str, text: &str) -> bool {
    let mut rest = message;
    text.split("{}").all(|piece| {
        let found = rest.find(piece);
        rest = found.map_or("", |at| &rest[at + piece.len()..]);
        found.is_some()
    })
}

/// Reads all files that are compiled into the library.
fn sources() -> Vec<(String, Vec<Token>)> {
    let mut found = Vec::new();
    let mut folders = ["src", "crates/core/src", "crates/methods/src", "crates/risk/src"].map(path).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.strip_prefix(Path::new(&path(""))).unwrap().display().to_string();
            if entry.is_dir() {
                folders.push(entry.display().to_string());
            } else if name.ends_with(".rs") && !["/tests.rs", "/tests/", "/toy/"].iter().any(|test| name.contains(test))
            {
                let text = std::fs::read_to_string(&entry).unwrap();
                let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
                found.push((name, tokens(&text[..end])));
            }
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// Splits a source into words, signs and texts; comments are left out.
fn tokens(source: &str) -> Vec<Token> {
    let text: Vec<char> = source.chars().collect();
    let (mut found, mut at, mut line) = (Vec::new(), 0, 1);
    while at < text.len() {
        let begin = at;
        let next = |n: usize| text.get(begin + n).copied().unwrap_or(' ');
        let mut token = None;
        match text[at] {
            '/' if next(1) == '/' => at += text[at..].iter().take_while(|c| **c != '\n').count(),
            // A character, and not a lifetime.
            '\'' if next(1) == '\\' => at += 2 + text[at + 2..].iter().skip(1).take_while(|c| **c != '\'').count() + 2,
            '\'' if next(2) == '\'' => at += 3,
            'r' if next(1) == '"' || (next(1) == '#' && next(2) == '"') => {
                let hash = next(1) == '#';
                at += if hash { 3 } else { 2 };
                let start = at;
                while text[at] != '"' || (hash && text[at + 1] != '#') {
                    at += 1;
                }
                token = Some((text[start..at].iter().collect(), true));
                at += if hash { 2 } else { 1 };
            }
            '"' => {
                at += 1;
                let mut literal = String::new();
                while text[at] != '"' {
                    if text[at] == '\\' {
                        at += 1;
                        match text[at] {
                            '\n' => at += text[at..].iter().take_while(|c| c.is_whitespace()).count() - 1,
                            'n' => literal.push(' '),
                            escaped => literal.push(escaped),
                        }
                    } else {
                        literal.push(text[at]);
                    }
                    at += 1;
                }
                at += 1;
                token = Some((literal, true));
            }
            c if c.is_alphanumeric() || c == '_' => {
                at += text[at..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').count();
                token = Some((text[begin..at].iter().collect(), false));
            }
            c => {
                at += 1;
                token = (!c.is_whitespace()).then(|| (c.to_string(), false));
            }
        }
        if let Some((text, is_literal)) = token {
            found.push(Token { text, is_literal, line });
        }
        line += text[begin..at].iter().filter(|c| **c == '\n').count();
    }
    found
}

/// Returns the texts of a file's refusals, with their lines.
fn refusals(file: &str, tokens: &[Token], definitions: &Definitions<'_>) -> Vec<(usize, String)> {
    if WHOLE.contains(&file) {
        return tokens.iter().filter_map(of_words).collect();
    }
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let refuses =
            !token.is_literal && (REFUSING.contains(&token.text.as_str()) || token.text.starts_with("refuse_"));
        if refuses && at > 0 && tokens[at - 1].text == "fn" {
            found.extend(Definition { file, tokens, at }.texts(file));
            continue;
        }
        let open = at + 1 + usize::from(tokens.get(at + 1).is_some_and(|next| next.text == "!"));
        if refuses && tokens.get(open).is_some_and(|next| next.text == "(") {
            for inner in &tokens[open..end(tokens, open)] {
                found.extend(of_words(inner));
                for name in names(inner) {
                    let all = definitions.get(&name).map_or(&[][..], Vec::as_slice);
                    // What a file calls by a name is its own, if it has one of that name.
                    let own = all.iter().any(|definition| definition.file == file);
                    let meant = all.iter().filter(|definition| definition.file == file || !own);
                    found.extend(meant.flat_map(|definition| definition.texts(file)));
                }
            }
        }
    }
    found
}

/// Returns a text with its gaps, if it has enough words for people.
fn of_words(token: &Token) -> Option<(usize, String)> {
    let mut text = String::new();
    let mut rest = token.text.replace("{{", "\u{1}").replace("}}", "\u{2}");
    while let Some((before, gap)) = rest.split_once('{') {
        text += before;
        text += "{}";
        rest = gap.split_once('}').map_or(String::new(), |(_, after)| after.to_owned());
    }
    let text = (text + &rest).replace('\u{1}', "{").replace('\u{2}', "}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = text.split(' ').filter(|word| word.contains(char::is_alphabetic)).count();
    (token.is_literal && words >= WORDS).then_some((token.line, text))
}

/// Returns the names that a token speaks of: itself, or those in the gaps of a text.
fn names(token: &Token) -> Vec<String> {
    if !token.is_literal {
        return vec![token.text.clone()];
    }
    let gaps = token.text.split('{').skip(1).filter_map(|gap| gap.split(['}', ':']).next());
    gaps.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Place where a constant, a variable or a function begins.
struct Definition<'a> {
    file: &'a str,
    tokens: &'a [Token],
    at: usize,
}

/// Everything that has a name.
type Definitions<'a> = HashMap<String, Vec<Definition<'a>>>;

fn definitions(sources: &[(String, Vec<Token>)]) -> Definitions<'_> {
    let mut found = Definitions::new();
    for (file, tokens) in sources {
        let named = |at: &usize| ["const", "let", "fn"].contains(&tokens[at - 1].text.as_str());
        // Texts of arguments are pages of help.
        let is_help = |at: &usize| {
            let kind = tokens.get(at + 2).map_or("", |kind| kind.text.as_str());
            ["Parameter", "FunctionSignature", "Self"].contains(&kind)
        };
        for at in (1..tokens.len()).filter(named).filter(|at| !is_help(at)) {
            found.entry(tokens[at].text.clone()).or_default().push(Definition { file, tokens, at });
        }
    }
    found
}

impl Definition<'_> {
    /// Returns the texts that a refusal in a file can mean. Constants are for all, variables and functions for their file.
    fn texts(&self, file: &str) -> Vec<(usize, String)> {
        let (tokens, kind) = (self.tokens, self.tokens[self.at - 1].text.as_str());
        let for_all = kind == "const" || (kind == "fn" && ADVISING.contains(&tokens[self.at].text.as_str()));
        if !for_all && self.file != file {
            return Vec::new();
        }
        let mut until = self.at;
        while let Some(token) = tokens.get(until).filter(|token| token.text != ";") {
            let opens = ["(", "{", "["].contains(&token.text.as_str()) && !token.is_literal;
            let body = opens && token.text == "{" && kind == "fn";
            until = if opens { end(tokens, until) } else { until + 1 };
            if body {
                break;
            }
        }
        tokens[self.at..until].iter().filter_map(of_words).collect()
    }
}

/// Returns the place behind the bracket that closes the one at `open`.
fn end(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open).filter(|(_, token)| !token.is_literal) {
        match token.text.as_str() {
            "(" | "{" | "[" => depth += 1,
            ")" | "}" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}
