//! The process for statements: it opens what is served, and runs what the server asks on its standard input.

use std::io::{Write, stdin, stdout};
use std::path::Path;
use std::sync::Arc;

use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::args::Args;
use super::engine;
use super::errors::Failure;
use super::frames::Frame;
use super::log;
use super::served::Served;
use super::work::Work;
use crate::shell::signals::leave_to_parent;

/// Frames that wait to be written.
const WAITING: usize = 2;

/// Runs statements until the server has gone.
/// Fails when something that is served cannot be opened, or there are no threads.
pub(super) async fn run(args: &Args, folder: &Path) -> Result<()> {
    log::start(args.quiet);
    // The server has been told, too, and lets statements end.
    leave_to_parent();
    let asked = listen(folder);
    let served = Served::open(args).await?;
    let threads = engine::threads()?;
    let work = Arc::new(Work::new(served.state, args.max_rows));
    let (out, frames) = mpsc::channel(WAITING);
    std::thread::spawn(move || write(frames));
    let ended = threads.spawn(answer(asked, work, out)).await;
    threads.shutdown_background();
    ended.map_err(|_| exec_datafusion_err!("serve: a process for statements has failed"))
}

/// Reads what the server asks, on a thread of its own. When the server has gone, the process ends, whatever it does.
fn listen(folder: &Path) -> mpsc::Receiver<Frame> {
    let (sender, asked) = mpsc::channel(WAITING);
    let folder = folder.to_owned();
    std::thread::spawn(move || {
        let mut input = stdin().lock();
        while let Ok(frame) = Frame::read_blocking(&mut input) {
            if sender.blocking_send(frame).is_err() {
                break;
            }
        }
        let _ = std::fs::remove_dir_all(folder);
        std::process::exit(0)
    });
    asked
}

/// Writes what comes of statements.
fn write(mut frames: mpsc::Receiver<Frame>) {
    let mut output = stdout().lock();
    while let Some(frame) = frames.blocking_recv() {
        let written = frame.encode().and_then(|bytes| output.write_all(&bytes)).and_then(|()| output.flush());
        if written.is_err() {
            return;
        }
    }
}

/// Runs one statement after the other.
async fn answer(mut asked: mpsc::Receiver<Frame>, work: Arc<Work>, out: mpsc::Sender<Frame>) {
    if out.send(Frame::Ready).await.is_err() {
        return;
    }
    while let Some(frame) = asked.recv().await {
        // A statement that was to stop may have ended before.
        let Frame::Ask(question) = frame else { continue };
        let (work, sender) = (Arc::clone(&work), out.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { work.run(*question, &sender).await });
        let done = loop {
            tokio::select! {
                done = tasks.join_next() => break done,
                frame = asked.recv() => match frame {
                    Some(Frame::Cancel) => tasks.abort_all(),
                    // The server asks one at a time.
                    Some(_) => {}
                    None => return,
                },
            }
        };
        let last = match done {
            Some(Ok(Ok(()))) => Frame::Done,
            Some(Ok(Err(failure))) => Frame::Failed(failure),
            Some(Err(error)) if error.is_cancelled() => Frame::Failed(Failure::cancelled()),
            Some(Err(_)) | None => Frame::Failed(Failure::internal()),
        };
        if out.send(last).await.is_err() {
            return;
        }
    }
}
