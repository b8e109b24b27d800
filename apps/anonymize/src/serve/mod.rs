//! `anonymize serve`: readers with the tools they have, over the PostgreSQL protocol.
//!
//! Files from top to bottom; each uses only those below it:
//!
//! | file | |
//! |---|---|
//! | `connection` | messages of one connection, one after the other |
//! | `startup`, `waiting`, `places` | how a session begins, who waits for one, and how many there may be |
//! | `simple`, `extended` | questions as texts, and prepared ones |
//! | `prepared` | a prepared statement and what is bound to it |
//! | `session` | who asks, and what they have set |
//! | `engine` | reading statements, and having them run |
//! | `statement`, `turns` | a statement that runs in a process, and which is next |
//! | `pool`, `process`, `frames` | the processes, and what is said to them |
//! | `worker`, `work` | the other side: what a process does with a statement |
//! | `parameters` | types and values of parameters |
//! | `allowed`, `bounds`, `expansion`, `lengths`, `pairs` | what readers may say, and how much of it |
//! | `rewrite` | the same in the engine's words |
//! | `served` | the tables, and the session that readers' are made of |
//! | `catalog`, `settings`, `functions`, `information` | what PostgreSQL's programs set, call and look up |
//! | `users`, `scram`, `tls` | who may connect |
//! | `errors`, `log` | what readers are told, and what is written down |
//! | `args` | arguments |
//! | `closed` | values of the engine that the compiler does not look into |

mod allowed;
mod args;
mod bounds;
mod catalog;
mod closed;
mod connection;
mod engine;
mod errors;
mod expansion;
mod extended;
mod frames;
mod functions;
mod information;
mod lengths;
mod log;
mod pairs;
mod parameters;
mod places;
mod pool;
mod prepared;
mod process;
mod rewrite;
mod scram;
mod served;
mod session;
mod settings;
mod simple;
mod startup;
mod statement;
mod tls;
mod turns;
mod users;
mod waiting;
mod work;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use pgwire::api::RandomPidSecretKeyGenerator;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub(crate) use args::Args;
use connection::Server;
use engine::Engine;
use places::Places;
use pool::Pool;
use process::Recipe;
use served::Served;
use session::Sessions;
use statement::Runner;
use turns::Turns;
use users::Users;
use waiting::Waiting;

use crate::shell::signals::told_to_end;

/// Time that statements have left when the server is stopped.
const GRACE: Duration = Duration::from_secs(10);

/// Serves until it is stopped.
/// Fails when arguments, files or publications do not allow it, and when it cannot listen.
pub(crate) async fn run(args: Args) -> Result<()> {
    if let Some(user) = &args.hash_password {
        return users::print_line(user);
    }
    args.check_together()?;
    if let Some(folder) = &args.worker {
        return worker::run(&args, folder).await;
    }
    let users = args.users.as_deref().map(Users::read).transpose()?;
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificates), Some(key)) => Some(tls::acceptor(certificates, key)?),
        _ => None,
    };
    let served = Served::open(&args).await?;
    let who = match &users {
        Some(users) => format!("{} users", users.len()),
        None => "anybody on this machine".to_owned(),
    };
    let how = if tls.is_some() { ", encrypted" } else { "" };
    let what = served.tables.join(", ");
    for notice in &served.notices {
        eprintln!("notice: {notice}");
    }
    // Whoever opens it to answer is another process.
    drop(served);
    if args.check {
        println!("would serve {what} at {} to {who}{how}", args.listen);
        return Ok(());
    }
    log::start(args.quiet);
    let listener = TcpListener::bind(args.listen).await;
    let listener =
        listener.map_err(|error| exec_datafusion_err!("serve: cannot listen at {}: {error}", args.listen))?;
    let threads = engine::threads()?;
    let server = Server {
        engine: Engine::new(threads.handle().clone(), runner(&args).await?),
        places: Places::new(args.sessions as usize, args.sessions_per_user(users.is_some())),
        users,
        tls,
        sessions: Sessions::default(),
        keys: RandomPidSecretKeyGenerator::default(),
        statement_time: args.statement_time(),
        idle_time: args.idle_time(),
    };
    println!("serving {what} at {} to {who}{how}", listener.local_addr()?);
    accept(&listener, Arc::new(server)).await?;
    // Whatever still computes is of no use to anybody.
    threads.shutdown_background();
    Ok(())
}

/// Starts processes for statements.
/// Fails when none of them starts.
async fn runner(args: &Args) -> Result<Runner> {
    let (room, memory) = (args.room(), args.statement_memory);
    let recipe = Recipe::of_this_process(memory)?;
    let pool = Pool::start(recipe, room.quick, room.kept()).await?;
    Ok(Runner::new(Turns::new(room), pool, memory, args.statement_time()))
}

/// Accepts connections until the process is to stop, then waits for running statements.
async fn accept(listener: &TcpListener, server: Arc<Server>) -> Result<()> {
    let (stop, stopped) = watch::channel(false);
    let waiting = Waiting::default();
    let mut connections = JoinSet::new();
    // Statements can keep all threads busy.
    let asked = told_to_end(GRACE + Duration::from_secs(5));
    tokio::pin!(asked);
    loop {
        let next = tokio::select! {
            _ = &mut asked => break,
            // Those that have ended are forgotten.
            Some(_) = connections.join_next() => continue,
            next = listener.accept() => next,
        };
        let Ok((socket, from)) = next else {
            // Of files there are too many open, which passes.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (server, stopped) = (Arc::clone(&server), stopped.clone());
        waiting.start(from.ip(), |turn| connections.spawn(connection::serve(socket, server, stopped, turn)));
    }
    log::line("stopping: no new connections; statements that run may end");
    let _ = stop.send(true);
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, all).await.is_err() {
        log::line("stopped with statements that did not end");
    }
    Ok(())
}
