//! A process that statements run in, one after the other: started, asked, watched and ended.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use datafusion::common::runtime::SpawnedTask;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::frames::Frame;

/// The argument that makes a process one of these. It is followed by the process's folder.
pub(super) const ARGUMENT: &str = "--worker";
/// Sets how long a process may take to open everything.
const TO_OPEN: Duration = Duration::from_secs(120);
/// Address space beyond the memory of a statement: programs, stacks of threads, and what allocators reserve and do not use.
const ADDRESSES: usize = 16 << 30;
/// Frames that are read before somebody takes them.
const AHEAD: usize = 1;
/// Ticks of a second of computing, in `/proc`.
const TICKS: u64 = 100;
/// Sets how friendly processes are to others at first, and when a statement takes long.
const NICE: &str = "1";
const NICEST: &str = "19";

/// Begins the names of folders of servers.
const FOLDER: &str = "anonymize-serve-";
/// Names the file in such a folder that the running server locks.
const LOCK: &str = "lock";

/// Says how processes are started.
#[derive(Debug)]
pub(super) struct Recipe {
    program: PathBuf,
    arguments: Vec<OsString>,
    /// A folder for files of all processes, which nobody else can read.
    folder: PathBuf,
    /// Tells other servers that the folder is in use.
    _lock: File,
    addresses: usize,
    number: AtomicU64,
}

impl Recipe {
    /// Starts processes with the arguments of this one.
    /// Fails when there is no folder for their files.
    pub(super) fn of_this_process(statement_memory: usize) -> Result<Self> {
        let own = std::process::id();
        // Also after the program was replaced by another version.
        let running = PathBuf::from(format!("/proc/{own}/exe"));
        let program = if running.exists() { running } else { std::env::current_exe()? };
        remove_left_behind(&std::env::temp_dir());
        let folder = std::env::temp_dir().join(format!("{FOLDER}{own}-{:016x}", rand::random::<u64>()));
        private_folder(&folder)?;
        let lock = File::create(folder.join(LOCK))?;
        lock.try_lock()?;
        let arguments = std::env::args_os().skip(1).collect();
        Ok(Self {
            program,
            arguments,
            folder,
            _lock: lock,
            addresses: ADDRESSES + statement_memory,
            number: AtomicU64::new(0),
        })
    }

    fn command(&self, folder: &PathBuf) -> Command {
        let mut command = if cfg!(unix) {
            let mut shell = Command::new("sh");
            shell.args(["-c", "ulimit -c 0; ulimit -v \"$0\" 2>/dev/null; exec nice -n \"$@\""]);
            shell.arg((self.addresses / 1024).to_string()).arg(NICE).arg(&self.program);
            shell
        } else {
            Command::new(&self.program)
        };
        command.args(&self.arguments).arg(ARGUMENT).arg(folder);
        // What does not fit the memory goes to the folder.
        command.env("TMPDIR", folder);
        // Signals for the server are not for processes with statements: these may end theirs.
        #[cfg(unix)]
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        command
    }
}

impl Drop for Recipe {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Removes folders of servers that were killed, which hold their locks no more. Those of other accounts cannot be removed.
fn remove_left_behind(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(FOLDER));
        // One that has no lock yet is about to get it.
        let Some(lock) = File::open(entry.path().join(LOCK)).ok().filter(|_| is_ours) else { continue };
        if lock.try_lock().is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn private_folder(folder: &PathBuf) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Used {
    /// Bytes of memory.
    pub memory: usize,
    pub computed: Duration,
}

/// A process that has opened everything.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    to: ChildStdin,
    frames: mpsc::Receiver<Frame>,
    _reading: SpawnedTask<()>,
    folder: PathBuf,
    /// Says what it had used when it was ready.
    at_first: Used,
}

impl Process {
    /// Starts a process, and waits until it is ready.
    /// Fails when it does not start, or cannot open what is served.
    pub(super) async fn start(recipe: &Recipe) -> Result<Self> {
        let number = recipe.number.fetch_add(1, Ordering::Relaxed);
        let folder = recipe.folder.join(number.to_string());
        private_folder(&folder)?;
        let mut child = recipe.command(&folder).spawn()?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::from(ErrorKind::BrokenPipe));
        };
        let (sender, frames) = mpsc::channel(AHEAD);
        let reading = SpawnedTask::spawn(async move {
            let mut from = BufReader::with_capacity(64 << 10, from);
            while let Ok(frame) = Frame::read(&mut from).await {
                if sender.send(frame).await.is_err() {
                    return;
                }
            }
        });
        let mut process = Self { child, to, frames, _reading: reading, folder, at_first: Used::default() };
        match timeout(TO_OPEN, process.next()).await {
            Ok(Some(Frame::Ready)) => {}
            _ => return Err(Error::other("a process for statements has not opened what is served")),
        }
        process.at_first = process.used();
        Ok(process)
    }

    /// Sends a frame.
    /// Fails when the process has ended, or the frame is too large.
    pub(super) async fn send(&mut self, frame: &Frame) -> Result<()> {
        self.to.write_all(&frame.encode()?).await?;
        self.to.flush().await
    }

    /// Waits for a frame. `None` when the process has ended. Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> Option<Frame> {
        self.frames.recv().await
    }

    /// Returns what the process has used so far; zeros where the operating system does not say.
    pub(super) fn used(&self) -> Used {
        self.child.id().and_then(used).unwrap_or_default()
    }

    /// Returns the bytes of memory that the process has beyond those it had at first.
    pub(super) fn grown(&self) -> usize {
        self.used().memory.saturating_sub(self.at_first.memory)
    }

    /// Lets other processes compute first, for good.
    pub(super) fn gives_way(&self) {
        let Some(process) = self.child.id() else { return };
        let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return };
        let threads = threads.filter_map(|thread| Some(thread.ok()?.file_name()));
        let mut command = Command::new("renice");
        command.args(["-n", NICEST, "-p"]).args(threads);
        // A statement that is not slowed down is slower for others only.
        let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.start_kill();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(target_os = "linux")]
fn used(process: u32) -> Option<Used> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: usize = resident.trim().strip_suffix("kB")?.trim().parse().ok()?;
    let times = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Behind the program's name, which can be anything: the 14th and 15th value of all.
    let (_, times) = times.rsplit_once(')')?;
    let mut ticks = times.split_whitespace().skip(11).map_while(|value| value.parse::<u64>().ok());
    let ticks = ticks.next()? + ticks.next()?;
    Some(Used { memory: kilobytes * 1024, computed: Duration::from_millis(ticks * 1000 / TICKS) })
}

#[cfg(not(target_os = "linux"))]
fn used(_process: u32) -> Option<Used> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn folders_of_servers_that_are_gone_are_removed() {
        let place = tempfile::tempdir().expect("a folder");
        let lock = |name: &str| {
            fs::create_dir_all(place.path().join(name).join("0")).expect("a folder");
            File::create(place.path().join(name).join(LOCK)).expect("a file")
        };
        drop(lock("anonymize-serve-1-a"));
        let running = lock("anonymize-serve-2-b");
        running.try_lock().expect("a lock");
        drop(lock("other"));
        fs::create_dir(place.path().join("anonymize-serve-3-c")).expect("a folder");
        remove_left_behind(place.path());
        let left = fs::read_dir(place.path()).expect("a folder").count();
        assert!(left == 3 && !place.path().join("anonymize-serve-1-a").exists(), "{left}");
    }

    #[test]
    fn what_a_process_uses_is_known() {
        let used = used(std::process::id()).expect("this process");
        assert!(used.memory > 1 << 20, "{used:?}");
        assert_eq!(super::used(u32::MAX), None);
    }
}
