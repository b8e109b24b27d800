//! Arguments, session and statements of the shell.

pub(crate) mod allocator;
mod args;
mod completion;
mod failure;
mod functions;
mod limits;
mod memory;
mod output;
mod place;
mod plain;
mod progress;
mod repl;
mod script;
mod session;
pub(crate) mod signals;
mod text;
#[cfg(feature = "distributed")]
pub(crate) mod worker;

use std::io::IsTerminal;

use clap::Parser;
use datafusion::common::exec_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use datafusion_anonymize::FailedAudits;

pub(crate) use args::{Args, Step};
pub(crate) use failure::text as failure;
#[cfg(feature = "serve")]
pub(crate) use limits::size;
#[cfg(feature = "serve")]
pub(crate) use memory::of_the_machine as memory_of_the_machine;

/// Runs the shell: files and commands if there are any, else an interactive session.
/// Fails with the error of the first failing statement, and says which it was.
pub(crate) async fn run(args: Args) -> Result<()> {
    let (context, mut print) = session::start(&args).await?;
    if args.is_interactive() && !std::io::stdin().is_terminal() {
        // A pipe is a script.
        script::run(&context, &print, &script::read("-")?, "standard input").await?;
        return audited(&args, &context);
    }
    if args.is_interactive() {
        if !args.quiet {
            println!("anonymize {} (DataFusion {})", env!("CARGO_PKG_VERSION"), datafusion_cli::DATAFUSION_CLI_VERSION);
        }
        let end = repl::run(&context, &mut print).await;
        return end.map_err(|error| DataFusionError::External(Box::new(error)));
    }
    let mut commands = 0;
    for step in &args.steps {
        let sql = match step {
            Step::File(path) => {
                script::run(&context, &print, &script::read(path)?, path).await?;
                continue;
            }
            Step::Command(sql) => sql,
        };
        commands += 1;
        match sql.trim().strip_prefix('\\') {
            // As in a session.
            Some(command) if repl::execute(command, &context, &mut print).await? => {}
            Some(_) => break,
            None => script::run(&context, &print, sql, &format!("command {commands}")).await?,
        }
    }
    audited(&args, &context)
}

/// Returns a session of the shell, for what is no statement.
/// Fails when it cannot be set up.
pub(crate) async fn session() -> Result<SessionContext> {
    let args = Args::parse_from(["anonymize"]);
    Ok(session::start(&args).await?.0)
}

/// Fails when a check failed and that was to be an error.
fn audited(args: &Args, context: &SessionContext) -> Result<()> {
    let audits = context.state().config().get_extension::<FailedAudits>();
    match audits.map_or(0, |audits| audits.count()) {
        failed if failed > 0 && args.fail_on_audit => exec_err!("audit: {failed} checks have failed"),
        _ => Ok(()),
    }
}
