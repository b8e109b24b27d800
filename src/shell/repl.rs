//! The interactive session: datafusion-cli's editor and commands, our way to run statements.

use datafusion::prelude::SessionContext;
use datafusion_anonymize::{function_help, function_overview};
use datafusion_cli::command::{Command, OutputFormat};
use datafusion_cli::print_options::PrintOptions;
use rustyline::Editor;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;

use super::completion::Editing;
use super::{failure, script};

/// As datafusion-cli keeps it.
const HISTORY: &str = ".history";

/// Reads and runs statements until the user leaves.
///
/// # Errors
/// When the terminal fails.
pub(super) async fn run(context: &SessionContext, print: &mut PrintOptions) -> rustyline::Result<()> {
    let mut editor: Editor<Editing, DefaultHistory> = Editor::new()?;
    let dialect = || context.state().config_options().sql_parser.dialect;
    editor.set_helper(Some(Editing::new(context, &dialect(), print.color)));
    // The first session has no history.
    let _ = editor.load_history(HISTORY);
    loop {
        match editor.readline("> ") {
            Ok(line) => {
                editor.add_history_entry(line.trim_end())?;
                if let Some(command) = line.strip_prefix('\\') {
                    if !execute(command, context, print).await {
                        break;
                    }
                    continue;
                }
                tokio::select! {
                    result = script::run(context, print, &line, "") => {
                        if let Err(error) = result {
                            eprintln!("{}", failure::text(&error));
                        }
                    }
                    _ = tokio::signal::ctrl_c() => println!("^C"),
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

/// Runs a command such as `\d`; `false` for `\q`.
async fn execute(command: &str, context: &SessionContext, print: &mut PrintOptions) -> bool {
    let words = command.split_whitespace().collect::<Vec<_>>().join(" ");
    if explain(&words) {
        return true;
    }
    let unknown = || eprintln!("'\\{words}' is not a command; \\? lists all");
    match words.parse::<Command>() {
        Ok(Command::Quit) => return false,
        Ok(Command::OutputFormat(None)) => println!("Output format is {:?}.", print.format),
        Ok(Command::OutputFormat(Some(format))) => match format.parse::<OutputFormat>() {
            Ok(format) => {
                if let Err(error) = format.execute(print) {
                    eprintln!("{error}");
                }
            }
            Err(()) => unknown(),
        },
        Ok(Command::Include(Some(path))) => {
            let result = match script::read(&path) {
                Ok(sql) => script::run(context, print, &sql, &path).await,
                Err(error) => Err(error),
            };
            if let Err(error) = result {
                eprintln!("{}", failure::text(&error));
            }
        }
        Ok(command) => {
            if let Err(error) = command.execute(context, print).await {
                eprintln!("{}", failure::text(&error));
            }
        }
        Err(()) => unknown(),
    }
    true
}

/// `\h` and `\h NAME` for relation functions; `false` for everything else, also for DataFusion's own functions.
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
