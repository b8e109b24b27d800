//! Users of the server: a file with a line each, `name:SCRAM-SHA-256$..`, as PostgreSQL keeps passwords.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

use datafusion::common::{exec_datafusion_err, exec_err};
use datafusion::error::Result;

use super::scram::Verifier;

/// Shortest password that a line is made of.
const SHORTEST: usize = 8;

/// Users and what is kept of their passwords.
#[derive(Debug)]
pub(super) struct Users {
    verifiers: HashMap<String, Verifier>,
    /// Secret for answers to names that nobody has: they are the same after another start, as those of users are.
    secret: Vec<u8>,
    /// The form that most verifiers have.
    form: (u32, usize),
}

impl Users {
    /// Reads a file of users.
    /// Fails when it cannot be read, or by everybody, when a line is not one, and when nobody is in it.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let name = path.display();
        let text =
            fs::read_to_string(path).map_err(|error| exec_datafusion_err!("users: cannot read {name}: {error}"))?;
        refuse_open(path)?;
        let mut verifiers = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let user = line.split_once(':').and_then(|(user, kept)| Some((user.trim(), Verifier::parse(kept.trim())?)));
            let Some((user, verifier)) = user.filter(|(user, _)| !user.is_empty()) else {
                return exec_err!(
                    "users: line {} of {name} must be name:SCRAM-SHA-256$..; anonymize serve --hash-password NAME makes one",
                    number + 1
                );
            };
            if verifiers.insert(user.to_owned(), verifier).is_some() {
                return exec_err!("users: line {} of {name} is about a user that was there before", number + 1);
            }
        }
        if verifiers.is_empty() {
            return exec_err!("users: there is nobody in {name}; anonymize serve --hash-password NAME makes a line");
        }
        let mut forms: HashMap<(u32, usize), usize> = HashMap::new();
        verifiers.values().for_each(|verifier: &Verifier| *forms.entry(verifier.form()).or_default() += 1);
        let form =
            forms.into_iter().max_by_key(|&(form, count)| (count, form)).map(|(form, _)| form).unwrap_or_default();
        Ok(Self { verifiers, secret: Verifier::secret_of(&text), form })
    }

    pub(super) fn len(&self) -> usize {
        self.verifiers.len()
    }

    /// Returns the verifier of a name; for a name that nobody has, one that no password fits.
    pub(super) fn verifier(&self, name: &str) -> Verifier {
        self.verifiers.get(name).cloned().unwrap_or_else(|| Verifier::of_nobody(name, &self.secret, self.form))
    }
}

/// Fails when everybody on this machine can read the file, or change it.
#[cfg(unix)]
fn refuse_open(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;

    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o027 != 0 {
        return exec_err!(
            "users: others can read or change {}, and could guess passwords from it; chmod 640 it",
            path.display()
        );
    }
    Ok(())
}

#[cfg(not(unix))]
fn refuse_open(_path: &Path) -> Result<()> {
    Ok(())
}

/// Reads a password from standard input and prints the user's line.
/// Fails when there is none, or it is too short.
pub(super) fn print_line(user: &str) -> Result<()> {
    if user.is_empty() || user.contains([':', '\n', '\r']) || user.starts_with('#') || user.trim() != user {
        return exec_err!("users: '{user}' cannot be a name in a file of users");
    }
    let input = std::io::stdin();
    if input.is_terminal() {
        eprint!("Password of {user} (it shows as you type): ");
        std::io::stderr().flush()?;
    }
    let mut password = String::new();
    input.lock().read_line(&mut password)?;
    let password = password.trim_end_matches(['\n', '\r']);
    if password.chars().count() < SHORTEST {
        return exec_err!("users: a password has at least {SHORTEST} characters; it is read from standard input");
    }
    println!("{user}:{}", postgres_protocol::password::scram_sha_256(password.as_bytes()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), text).expect("written");
        file
    }

    #[test]
    fn lines() {
        let kept = postgres_protocol::password::scram_sha_256(b"a long password");
        let users = Users::read(file(&format!("# readers\n\nann:{kept}\n bob : {kept} \n")).path()).expect("users");
        assert_eq!(users.len(), 2);
        assert_eq!(Some(users.verifier("bob")), Verifier::parse(&kept));
        assert_ne!(Some(users.verifier("eve")), Verifier::parse(&kept));
        for wrong in ["", "# nobody", "ann", "ann:plain", &format!(":{kept}"), &format!("a:{kept}\na:{kept}")] {
            assert!(Users::read(file(wrong).path()).is_err(), "{wrong}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn files_that_others_read_are_refused() {
        use std::os::unix::fs::PermissionsExt;

        let kept = postgres_protocol::password::scram_sha_256(b"a long password");
        let file = file(&format!("ann:{kept}"));
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).expect("set");
        let error = Users::read(file.path()).expect_err("open to all").to_string();
        assert!(error.contains("chmod 640"), "{error}");
    }
}
