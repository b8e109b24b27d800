//! Bounds on the size and depth of a statement, known before it is parsed.
//!
//! A parser makes a tree of `1 + 1 + ..` that is as deep as it is long, and whatever walks trees that deep, or only drops them, ends the
//! process when its stack is full. The tokenizer has no depth.

use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use super::errors::Failure;

/// Bytes of a statement. A list of ten thousand numbers has a tenth of it.
pub(super) const LONGEST: usize = 1 << 20;
/// Words, names, numbers and signs of all statements of a message.
const TOKENS: usize = 100_000;
/// Operators, and whatever else can make a tree deeper, of all statements of a message. The engine's time for a tree grows faster than its depth.
const OPERATORS: usize = 1_000;
/// Parentheses and brackets in each other.
const DEPTH: usize = 60;

/// Words of the language that stand beside each other in long lists. All others may set a tree on top of another (`1 IN (1) IN (1)`,
/// `'a' REGEXP 'a' REGEXP 'a'`), and which of them do is a matter of the parser's version.
const LISTED: [Keyword; 10] = [
    Keyword::AS,
    Keyword::ASC,
    Keyword::DATE,
    Keyword::DESC,
    Keyword::FALSE,
    Keyword::NULL,
    Keyword::THEN,
    Keyword::TIMESTAMP,
    Keyword::TRUE,
    Keyword::WHEN,
];

/// Returns the tokens of a text, without what is between them.
/// Fails when it is too much, or no SQL.
pub(super) fn tokens(sql: &str) -> Result<Vec<Token>, Failure> {
    if sql.len() > LONGEST {
        return Err(too_large(format!("a statement has at most {LONGEST} bytes, and this one {}", sql.len())));
    }
    let mut tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize().map_err(|_| {
        Failure::new("42601", "the statement cannot be read: a quote or a comment has no end, or a sign is unknown")
    })?;
    tokens.retain(|token| !matches!(token, Token::Whitespace(_)));
    if tokens.len() > TOKENS {
        return Err(too_large(format!("a statement has at most {TOKENS} words and signs")));
    }
    let (mut depth, mut operators) = (0_usize, 0);
    for token in &tokens {
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                depth += 1;
                if depth > DEPTH {
                    return Err(too_large(format!("parentheses are at most {DEPTH} deep")));
                }
                // `a[1][1]`, `f(x)(y)`: brackets behind each other can be depth, too.
                operators += usize::from(matches!(token, Token::LBracket));
            }
            Token::RParen | Token::RBracket | Token::RBrace => depth = depth.saturating_sub(1),
            Token::Word(word) => {
                let is_name = word.quote_style.is_some() || word.keyword == Keyword::NoKeyword;
                operators += usize::from(!is_name && !LISTED.contains(&word.keyword));
            }
            Token::Comma
            | Token::SemiColon
            | Token::Period
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::Placeholder(_)
            | Token::EOF => {}
            _ => operators += 1,
        }
    }
    if operators > OPERATORS {
        return Err(too_large(format!("a statement has at most {OPERATORS} operators")));
    }
    Ok(tokens)
}

fn too_large(message: String) -> Failure {
    Failure::new("54001", message).hint("Ask for less at a time; long lists of values fit as IN (..)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much() {
        let list = format!("SELECT count(*) FROM t WHERE a IN ({})", vec!["12345"; 10_000].join(", "));
        assert!(tokens(&list).is_ok());
        let deep = format!("SELECT {}1{}", "(".repeat(100), ")".repeat(100));
        for wrong in [
            format!("SELECT 1{}", " + 1".repeat(3000)),
            format!("SELECT 1{}", " OR true".repeat(3000)),
            format!("SELECT a{}", "[1]".repeat(3000)),
            format!("SELECT 1{}", "::int".repeat(3000)),
            format!("SELECT {}1", "- ".repeat(3000)),
            format!("SELECT 1{}", " UNION SELECT 1".repeat(3000)),
            format!("SELECT 1{}", " MINUS SELECT 1".repeat(3000)),
            format!("SELECT 1{}", " IN (1)".repeat(3000)),
            format!("SELECT 'a'{}", " REGEXP 'a'".repeat(3000)),
            format!("SELECT 'a'{}", " ILIKE 'a'".repeat(3000)),
            format!("SELECT 'a'{}", " SIMILAR TO 'a'".repeat(3000)),
            format!("SELECT true{}", " OVERLAPS true".repeat(3000)),
            format!("SELECT true{}", " XOR true".repeat(3000)),
            format!("SELECT {} '1'", "INTERVAL ".repeat(3000)),
            format!("SELECT '{}'", "x".repeat(LONGEST)),
            deep,
        ] {
            assert_eq!(tokens(&wrong).expect_err("too much").code(), "54001");
        }
        assert_eq!(tokens("SELECT 'a").expect_err("open").code(), "42601");
    }
}
