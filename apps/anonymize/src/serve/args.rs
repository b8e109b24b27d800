//! Arguments of the server, and what they allow together.

use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use datafusion::common::exec_err;
use datafusion::error::Result;

use super::turns::Room;
use crate::shell;

/// Answer readers' questions over the PostgreSQL protocol
///
/// Publications by their public side, and released tables; nothing else can be reached, and nothing can be written. Readers use psql, BI
/// tools and drivers: aggregates over a publication's name are estimates from its newest release. Off the loopback address it needs TLS
/// and users.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Address and port; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5433")]
    pub(super) listen: SocketAddr,

    /// A publication: the name readers use, and the location of its public side
    #[arg(long, value_name = "NAME=LOCATION", value_parser = named)]
    pub(super) publication: Vec<Named>,

    /// A released table: a name, and a Parquet file or folder
    #[arg(long, value_name = "NAME=PATH", value_parser = named)]
    pub(super) release: Vec<Named>,

    /// Users and their passwords, by lines that --hash-password makes
    #[arg(long, value_name = "FILE")]
    pub(super) users: Option<PathBuf>,

    /// Certificate chain in PEM; with it all connections must be encrypted
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(super) tls_cert: Option<PathBuf>,

    /// The certificate's private key in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(super) tls_key: Option<PathBuf>,

    /// Sessions at a time
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) sessions: u32,

    /// Sessions of one user at a time; a quarter of all by default, where there are users
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) sessions_per_user: Option<u32>,

    /// Seconds that a statement may take, until its last row is sent
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(super) statement_timeout: u32,

    /// Seconds after which a session that asks nothing is ended
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(u32).range(1..=604_800))]
    pub(super) idle_timeout: u32,

    /// Memory that a statement may use, such as 256m; a process that takes more is ended
    #[arg(long, value_name = "SIZE", default_value = "256m", value_parser = crate::shell::size)]
    pub(super) statement_memory: usize,

    /// Memory that all statements together may use, which says how many run at a time; half of the machine's by default, where that is known
    #[arg(short = 'm', long, value_name = "SIZE", value_parser = crate::shell::size)]
    pub(super) memory_limit: Option<usize>,

    /// Disk for temporary files of all statements together: what does not fit the memory
    #[arg(long, value_name = "SIZE", default_value = "4g", value_parser = crate::shell::size)]
    pub(super) disk_limit: usize,

    /// Rows that a statement may return
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000_000)]
    pub(super) max_rows: usize,

    /// Check arguments, files and publications, and exit
    #[arg(long)]
    pub(super) check: bool,

    /// Read a password from standard input, print the user's line for --users, and exit
    #[arg(long, value_name = "NAME")]
    pub(super) hash_password: Option<String>,

    /// Log no statements, only sessions and failures
    #[arg(short, long)]
    pub(super) quiet: bool,

    /// Run statements that the server asks, with files in this folder. The server starts these processes itself
    #[arg(long, value_name = "FOLDER", hide = true)]
    pub(super) worker: Option<PathBuf>,
}

/// A name and a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) location: String,
}

/// Longest name of a table, as in PostgreSQL.
const LONGEST_NAME: usize = 63;

/// Reads `name=location`. Names are those that SQL takes without quotes, so that nobody has to write any.
fn named(text: &str) -> Result<Named, String> {
    let Some((name, location)) = text.split_once('=') else {
        return Err(format!("'{text}' must be a name and a location: hospital=lake/hospital/"));
    };
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|letter| letter.is_ascii_lowercase() || letter == '_');
    let plain = letters.all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    if !begins || !plain || name.len() > LONGEST_NAME {
        return Err(format!("'{name}' must be lower-case letters, digits and underscores, such as hospital"));
    }
    // Names of the catalog are found without its schema's name.
    if name.starts_with("pg_") {
        return Err(format!("'{name}' must not begin with pg_, as names of PostgreSQL's own tables do"));
    }
    if location.is_empty() {
        return Err(format!("the location of {name} is missing: {name}=lake/{name}/"));
    }
    Ok(Named { name: name.to_owned(), location: location.to_owned() })
}

impl Args {
    /// # Errors
    /// When there is nothing to serve, or readers elsewhere could connect without a password or be overheard.
    pub(super) fn check_together(&self) -> Result<()> {
        if self.publication.is_empty() && self.release.is_empty() {
            return exec_err!(
                "serve: name what is to be served: --publication hospital=lake/hospital/ or --release q1=q1.parquet"
            );
        }
        if !self.listen.ip().is_loopback() && (self.tls_cert.is_none() || self.users.is_none()) {
            return exec_err!(
                "serve: {} can be reached from other machines, so --tls-cert, --tls-key and --users are needed; without them \
                 --listen 127.0.0.1:5433 serves this machine only",
                self.listen
            );
        }
        Ok(())
    }

    pub(super) fn statement_time(&self) -> Duration {
        Duration::from_secs(self.statement_timeout.into())
    }

    /// Returns the number of sessions that a user may have. Without users, names are free, and say nothing of who asks.
    pub(super) fn sessions_per_user(&self, are_known: bool) -> usize {
        let share = if are_known { self.sessions.div_ceil(4) } else { self.sessions };
        self.sessions_per_user.unwrap_or(share) as usize
    }

    /// Returns how many statements may run at a time.
    pub(super) fn room(&self) -> Room {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let memory = self.memory_limit.or_else(|| Some(shell::memory_of_the_machine()? / 2));
        Room::of(processors, memory, self.statement_memory)
    }

    pub(super) fn idle_time(&self) -> Duration {
        Duration::from_secs(self.idle_timeout.into())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn args(words: &[&str]) -> Result<Args, String> {
        let words = ["serve"].iter().chain(words);
        let command = Command::try_parse_from(words).map_err(|error| error.to_string())?;
        command.args.check_together().map_err(|error| error.to_string()).map(|()| command.args)
    }

    #[test]
    fn names() {
        let found = args(&["--publication", "hospital=lake/a=b/"]).expect("fine");
        assert_eq!(found.publication, [Named { name: "hospital".to_owned(), location: "lake/a=b/".to_owned() }]);
        for wrong in ["hospital", "=x", "Hospital=x", "a b=x", "9a=x", "pg_class=x", "a="] {
            assert!(args(&["--release", wrong]).is_err(), "{wrong}");
        }
        assert!(args(&[]).expect_err("nothing").contains("name what is to be served"));
    }

    #[test]
    fn other_machines() {
        let elsewhere = ["--publication", "a=b", "--listen", "0.0.0.0:5433"];
        assert!(args(&elsewhere).expect_err("open").contains("can be reached from other machines"));
        let tls = [&elsewhere[..], &["--tls-cert", "c", "--tls-key", "k"]].concat();
        assert!(args(&tls).is_err());
        assert!(args(&[&tls[..], &["--users", "u"]].concat()).is_ok());
        assert!(args(&["--publication", "a=b", "--listen", "[::1]:0"]).is_ok());
        assert!(args(&["--publication", "a=b", "--tls-cert", "c"]).is_err());
    }
}
