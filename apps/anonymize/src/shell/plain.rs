//! Plain option keys of publications: `OPTIONS ('method' 'm_invariant')`.
//!
//! datafusion-cli checks the options of external tables against what it knows of formats before the table's factory sees
//! them; keys with the prefix `anonymize.` pass, plain ones do not. So here they get that prefix.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::text::Text;

/// Returns the statement with prefixed keys, if it creates a publication.
pub(super) fn prefix_keys(text: &Text<'_>, tokens: &[TokenWithSpan]) -> Option<String> {
    let tokens: Vec<&TokenWithSpan> =
        tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect();
    let is = |place: usize, word: &str| match tokens.get(place).map(|token| &token.token) {
        Some(Token::Word(found)) => found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word),
        _ => false,
    };
    // Columns, which can have any name, are in parentheses.
    let mut open = 0;
    let depths: Vec<i32> = tokens
        .iter()
        .map(|token| {
            let before = open;
            open += match token.token {
                Token::LParen => 1,
                Token::RParen => -1,
                _ => 0,
            };
            before
        })
        .collect();
    let find = |words: &[&str]| {
        (0..tokens.len())
            .find(|&place| depths[place] == 0 && words.iter().enumerate().all(|(i, word)| is(place + i, word)))
    };
    if !is(0, "create") {
        return None;
    }
    find(&["stored", "as", "publication"])?;
    let options = find(&["options"])? + 1;
    let mut places = Vec::new();
    for place in (options + 1..tokens.len()).take_while(|&place| depths[place] > 0) {
        let begins = matches!(tokens[place - 1].token, Token::LParen | Token::Comma);
        match &tokens[place].token {
            Token::SingleQuotedString(key) if begins && !key.contains('.') => {
                places.push(text.offset(tokens[place].span.start) + 1);
            }
            Token::Word(word) if begins && word.quote_style.is_none() => {
                let compound = matches!(tokens.get(place + 1).map(|token| &token.token), Some(Token::Period));
                if !compound {
                    places.push(text.offset(tokens[place].span.start));
                }
            }
            _ => {}
        }
    }
    let mut changed = text.sql().to_owned();
    for place in places.into_iter().rev() {
        changed.insert_str(place, "anonymize.");
    }
    Some(changed)
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn prefixed(sql: &str) -> Option<String> {
        let tokens = Tokenizer::new(&GenericDialect, sql).tokenize_with_location().unwrap();
        prefix_keys(&Text::new(sql), &tokens)
    }

    #[test]
    fn keys_of_publications_get_a_prefix() {
        let sql = "CREATE EXTERNAL TABLE t (a INT, options INT)\nSTORED AS publication LOCATION 'é, (x)'\nOPTIONS ('m' '10', method m_invariant, anonymize.id a,\n 'aws.region' 'x', 'quasi' 'a, b')";
        let expected = "CREATE EXTERNAL TABLE t (a INT, options INT)\nSTORED AS publication LOCATION 'é, (x)'\nOPTIONS ('anonymize.m' '10', anonymize.method m_invariant, anonymize.id a,\n 'aws.region' 'x', 'anonymize.quasi' 'a, b')";
        assert_eq!(prefixed(sql).as_deref(), Some(expected));
    }

    #[test]
    fn clauses_stand_in_any_order() {
        let sql = "CREATE EXTERNAL TABLE t (options INT) OPTIONS ('m' '10') STORED AS PUBLICATION LOCATION 'x'";
        let expected =
            "CREATE EXTERNAL TABLE t (options INT) OPTIONS ('anonymize.m' '10') STORED AS PUBLICATION LOCATION 'x'";
        assert_eq!(prefixed(sql).as_deref(), Some(expected));
    }

    #[test]
    fn other_statements_stay() {
        assert_eq!(prefixed("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'x' OPTIONS ('has_header' 'true')"), None);
        assert_eq!(prefixed("SELECT 'stored as publication options (m 10)'"), None);
        let without = "CREATE EXTERNAL TABLE t STORED AS PUBLICATION LOCATION 'x'";
        assert_eq!(prefixed(without), None);
    }
}
