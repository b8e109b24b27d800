//! The interactive session: datafusion-cli's editor and commands, our way to run statements.

use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use datafusion_anonymize::{function_help, function_overview};
use datafusion_cli::command::{Command, OutputFormat};
use datafusion_cli::print_options::PrintOptions;
use rustyline::Editor;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;

use super::completion::{Editing, meant};
use super::signals::Interrupts;
use super::{failure, script};

/// File of the history, as datafusion-cli keeps it.
const HISTORY: &str = ".history";

/// Reads and runs statements until the user leaves.
/// Fails when the terminal fails.
pub(super) async fn run(context: &SessionContext, print: &mut PrintOptions) -> rustyline::Result<()> {
    let mut editor: Editor<Editing, DefaultHistory> = Editor::new()?;
    let dialect = || context.state().config_options().sql_parser.dialect;
    editor.set_helper(Some(Editing::new(context, &dialect(), print.color)));
    // The first session has no history.
    let _ = editor.load_history(HISTORY);
    let interrupts = Interrupts::start();
    loop {
        match editor.readline("> ") {
            Ok(line) => {
                editor.add_history_entry(line.trim_end())?;
                if let Some(command) = line.strip_prefix('\\').or_else(|| meant(&line)) {
                    match execute(command, context, print).await {
                        Ok(true) => {}
                        Ok(false) => break,
                        Err(error) => eprintln!("{}", failure::text(&error)),
                    }
                    continue;
                }
                interrupts.forget();
                tokio::select! {
                    result = script::run(context, print, &line, "") => {
                        if let Err(error) = result {
                            eprintln!("{}", failure::text(&error));
                        }
                    }
                    () = interrupts.next() => println!("^C"),
                }
                if let Some(helper) = editor.helper_mut() {
                    helper.set_dialect(&dialect());
                }
            }
            Err(ReadlineError::Interrupted) => {
                println!("^C");
                if let Some(helper) = editor.helper() {
                    helper.reset_hint();
                }
            }
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error),
        }
    }
    editor.save_history(HISTORY)
}

/// Runs a command such as `\d`, said without its backslash; `false` for `\q`.
/// Fails when there is no such command, or it fails.
pub(super) async fn execute(command: &str, context: &SessionContext, print: &mut PrintOptions) -> Result<bool> {
    let words = command.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = words.trim_end_matches([';', ' ']);
    if explain(words) {
        return Ok(true);
    }
    let unknown = || exec_datafusion_err!("'\\{words}' is not a command; \\? lists all");
    match words.parse::<Command>().map_err(|()| unknown())? {
        Command::Quit => return Ok(false),
        Command::OutputFormat(None) => println!("Output format is {:?}.", print.format),
        Command::OutputFormat(Some(format)) => {
            format.parse::<OutputFormat>().map_err(|()| unknown())?.execute(print)?;
        }
        Command::Include(Some(path)) => script::run(context, print, &script::read(&path)?, &path).await?,
        command => {
            let done = command.execute(context, print).await;
            // It may be one of DataFusion's functions; if it is none, ours have names that are like it.
            done.map_err(|error| match words.strip_prefix("h ").map(function_help) {
                Some(Err(text)) => exec_datafusion_err!("{text}; SHOW FUNCTIONS lists all"),
                _ => error,
            })?;
        }
    }
    Ok(true)
}

/// Explains by `\h` and `\h NAME` for relation functions; `false` for everything else, also for DataFusion's own functions.
fn explain(words: &str) -> bool {
    match words.split_once(' ') {
        None if words == "h" => {
            for (name, about) in function_overview() {
                println!("{name:<20} {about}");
            }
            println!("\n\\h NAME explains one of them; SHOW FUNCTIONS lists DataFusion's own as well.");
            true
        }
        Some(("h", name)) => match function_help(name) {
            Ok(text) => {
                println!("{text}");
                true
            }
            Err(_) => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands may end with a semicolon, as statements do.
    #[tokio::test]
    async fn commands_may_end_with_a_semicolon() {
        let context = SessionContext::new();
        let mut print = PrintOptions {
            format: datafusion_cli::print_format::PrintFormat::Table,
            quiet: true,
            maxrows: datafusion_cli::print_options::MaxRows::Unlimited,
            color: false,
            instrumented_registry: std::sync::Arc::default(),
        };
        assert!(execute("h;", &context, &mut print).await.unwrap());
        assert!(execute("h m_invariant ;", &context, &mut print).await.unwrap());
        assert!(!execute("q;", &context, &mut print).await.unwrap());
        assert!(
            execute("nothing;", &context, &mut print)
                .await
                .unwrap_err()
                .to_string()
                .contains("'\\nothing' is not a command")
        );
    }
}
