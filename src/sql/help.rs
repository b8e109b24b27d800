//! Help of each function and argument: for the shell's `\h`, and for the tables of the reference, which a test
//! compares with these texts.

use std::fmt::Write;

use serde_json::{Value, json};

use super::functions;
use super::signature::{FunctionSignature, Kind, Parameter, Preset, suggestion};
use crate::methods::METHODS;

/// Returns the names of all relation functions, each with its purpose.
pub fn function_overview() -> Vec<(&'static str, &'static str)> {
    functions().iter().map(|function| (function.signature.name, function.signature.about)).collect()
}

/// Returns the help of a function: its purpose, its arguments with their defaults, and an example.
///
/// # Errors
/// When there is no such function: the text says which one was probably meant.
pub fn function_help(name: &str) -> Result<String, String> {
    let name = name.trim().trim_end_matches(';').to_lowercase();
    let functions = functions();
    let Some(function) = functions.iter().find(|function| function.signature.name == name) else {
        let names = functions.iter().map(|function| function.signature.name);
        return Err(format!("there is no relation function {name}{}", suggestion(&name, names)));
    };
    let signature = function.signature;
    let mut text = format!("{}: {}\n\n", signature.name, signature.about);
    for (name, what, default) in arguments(signature) {
        let default = if default.is_empty() { String::new() } else { format!(" [{default}]") };
        let _ = writeln!(text, "  {name:<16} {what}{default}");
    }
    let _ = write!(text, "\nSELECT * FROM {};", signature.example());
    Ok(text)
}

/// Returns the names of a function's arguments, in the order of a call without names.
pub fn function_parameters(name: &str) -> Option<Vec<&'static str>> {
    let functions = functions();
    let function = functions.iter().find(|function| function.signature.name == name)?;
    Some(function.signature.parameters.iter().map(|parameter| parameter.name).collect())
}

/// Returns a call of a function with the arguments that every call must have.
pub fn function_example(name: &str) -> Option<String> {
    let functions = functions();
    let function = functions.iter().find(|function| function.signature.name == name)?;
    Some(format!("SELECT * FROM {}", function.signature.example()))
}

/// Returns the arguments of a function as a table of the reference.
pub fn function_arguments(name: &str) -> Option<String> {
    let functions = functions();
    let function = functions.iter().find(|function| function.signature.name == name)?;
    let mut text = "| argument | | default |\n|---|---|---|\n".to_owned();
    for (name, what, default) in arguments(function.signature) {
        let _ = writeln!(text, "| `{name}` | {what} | {default} |");
    }
    Some(text)
}

/// Returns all functions with their arguments, as JSON, for bindings that are made from it: name, kind, words, default and text of each.
pub(crate) fn signatures() -> String {
    let functions = functions();
    let all = functions.iter().map(|function| {
        let signature = function.signature;
        let parameters = signature.parameters.iter().map(|parameter| described(parameter, None));
        // Those without a private view return something else.
        let is_release = METHODS.iter().any(|method| method.signature.name == signature.name)
            && signature.parameters.iter().any(|parameter| parameter.name == Parameter::PRIVATE.name);
        let (name, about, parameters) = (signature.name, signature.about, parameters.collect::<Vec<_>>());
        json!({"name": name, "about": about, "releases": is_release, "parameters": parameters})
    });
    let mut all: Vec<Value> = all.collect();
    #[cfg(feature = "publication")]
    all.push(publication());
    Value::Array(all).to_string()
}

/// Describes the options of publications as the arguments of a function. An option is there once for each method that takes it.
#[cfg(feature = "publication")]
fn publication() -> Value {
    use super::publication::{OWN, takers};

    let methods: Vec<&str> = takers().map(|(method, _)| method).collect();
    let own = OWN.map(|(name, kind, text, default)| {
        let words: &[&str] = if name == "method" { &methods } else { &[] };
        json!({
            "name": name, "kind": kind, "required": false, "words": words, "default": null, "default_text": default, "text": text,
            "example": null, "method": null,
        })
    });
    let taken =
        takers().flat_map(|(method, taken)| taken.into_iter().map(move |option| described(option, Some(method))));
    let parameters: Vec<Value> = own.into_iter().chain(taken).collect();
    json!({"name": "publication", "about": "a publication to insert snapshots into; without a method, to read only", "releases": false, "parameters": parameters})
}

/// Describes a parameter, as it is taken by a function or by a publication's method.
fn described(parameter: &Parameter, method: Option<&str>) -> Value {
    let words = match parameter.kind {
        Kind::Word(words) => words.to_vec(),
        Kind::WordOrRelation(word) | Kind::IntegerOrWord(word) | Kind::NumberOrWord(word) => vec![word],
        _ => Vec::new(),
    };
    let preset = match parameter.default {
        Preset::Described => Value::Null,
        Preset::Word(word) => word.into(),
        Preset::Integer(number) => number.into(),
        Preset::Number(number) => number.into(),
    };
    json!({
        "name": parameter.name, "kind": parameter.kind.name(), "required": parameter.required, "words": words, "default": preset,
        "default_text": default_of(parameter), "text": parameter.text, "example": parameter.example, "method": method,
    })
}

fn default_of(parameter: &Parameter) -> String {
    match parameter.default {
        Preset::Described => parameter.otherwise.to_owned(),
        preset => preset.to_string(),
    }
}

fn arguments(signature: &FunctionSignature<'static>) -> Vec<(&'static str, String, String)> {
    let argument = |parameter: &Parameter| {
        let words = match parameter.kind {
            Kind::Word(words) => {
                format!(" ({})", words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(", "))
            }
            _ => String::new(),
        };
        (parameter.name, format!("{}{words}", parameter.text), default_of(parameter))
    };
    signature.parameters.iter().map(argument).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_explained() {
        for function in functions() {
            let signature = function.signature;
            assert!(!signature.about.is_empty(), "{}", signature.name);
            for (name, what, default) in arguments(signature) {
                assert!(!what.is_empty() && !default.is_empty(), "{} {name}", signature.name);
            }
            let text = function_help(signature.name).unwrap();
            assert!(text.contains(signature.name) && text.contains("SELECT * FROM"), "{text}");
        }
    }

    #[test]
    fn a_mistyped_name_is_recognised() {
        assert_eq!(
            function_help("m_invarient").unwrap_err(),
            "there is no relation function m_invarient; did you mean m_invariant?"
        );
        assert!(function_help("M_Invariant;").unwrap().contains("previous"));
    }
}
