//! Refuses to publish beside a later version's tables, and to vouch for them.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tempfile::{TempDir, tempdir};

use super::publications::{Q1, Q2, count, declaration, files, from_the_root, hospital};
use super::support::{error, number, path, run, session};

/// Returns a copy of a folder: a process reads no commit twice.
fn copy_of(folder: &Path) -> TempDir {
    let copy = tempdir().unwrap();
    for (file, contents) in files(folder) {
        let file = copy.path().join(file.strip_prefix(folder).unwrap());
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, contents).unwrap();
    }
    copy
}

/// Actions of a commit of the table `hospital`, or of its ledger.
struct Commit {
    file: PathBuf,
    actions: Vec<Value>,
}

impl Commit {
    fn read(here: &Path, table: &str, version: u64) -> Self {
        let file = here.join(table).join(format!("_delta_log/{version:020}.json"));
        let text = std::fs::read_to_string(&file).unwrap();
        Self { file, actions: text.lines().map(|line| serde_json::from_str(line).unwrap()).collect() }
    }

    fn of(&mut self, action: &str) -> &mut Map<String, Value> {
        let found = self.actions.iter_mut().find_map(|line| line.get_mut(action));
        found.unwrap_or_else(|| panic!("no {action}")).as_object_mut().unwrap()
    }

    fn settings(&mut self) -> &mut Map<String, Value> {
        self.of("metaData").get_mut("configuration").unwrap().as_object_mut().unwrap()
    }

    /// Writes it, and returns its hash.
    fn write(&self) -> String {
        let text: Vec<String> = self.actions.iter().map(Value::to_string).collect();
        let text = text.join("\n");
        std::fs::write(&self.file, &text).unwrap();
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }
}

/// Changes JSON that is kept as a text.
fn inside(map: &mut Map<String, Value>, key: &str, change: impl FnOnce(&mut Value)) {
    let text = map.get(key).unwrap_or_else(|| panic!("no {key}")).as_str().unwrap();
    let mut value: Value = serde_json::from_str(text).unwrap();
    change(&mut value);
    map.insert(key.to_owned(), Value::String(value.to_string()));
}

/// Changes a ledger of one release as a later version could have written it: all hashes are right.
fn rewritten(here: &Path, begun: impl FnOnce(&mut Map<String, Value>), decided: impl FnOnce(&mut Map<String, Value>)) {
    let mut first = Commit::read(here, "hospital.private", 0);
    begun(first.settings());
    let before = first.write();
    let mut hasher = blake3::Hasher::new();
    let settings = first.settings();
    for key in ["publication", "fingerprint-key", "terms", "public", "format"] {
        let said = settings[&format!("anonymize.{key}")].as_str().unwrap();
        hasher.update(&(said.len() as u64).to_le_bytes()).update(said.as_bytes());
    }
    let metadata = hasher.finalize().to_hex().to_string();
    let mut second = Commit::read(here, "hospital.private", 1);
    let said = second.of("commitInfo");
    decided(said);
    inside(said, "anonymizeLedger", |state| {
        (state["before"], state["metadata"]) = (before.into(), metadata.into());
    });
    let text = |key: &str| said[key].as_str().unwrap();
    let hash =
        blake3::hash(format!("{}\n{}", text("anonymize"), text("anonymizeLedger")).as_bytes()).to_hex().to_string();
    said.insert("anonymizeHash".to_owned(), hash.into());
    second.write();
}

/// Adds something to a place in JSON, such as `/method`.
fn add(to: &'static str) -> impl Fn(&mut Value) {
    move |value| {
        let place = value.pointer_mut(to).unwrap_or_else(|| panic!("no {to}"));
        place.as_object_mut().unwrap().insert("promised_later".to_owned(), json!(true));
    }
}

fn nothing(_: &mut Map<String, Value>) {}

async fn published() -> TempDir {
    from_the_root();
    let here = tempdir().unwrap();
    let context = session();
    hospital(&context, here.path()).await;
    run(&context, Q1).await.unwrap();
    for table in ["hospital", "hospital.private"] {
        assert_eq!(Commit::read(here.path(), table, 0).settings()["anonymize.format"], "1", "{table}");
    }
    here
}

fn declared(here: &Path) -> String {
    declaration(&here.join("hospital").display().to_string(), 2)
}

fn theirs(here: &Path) -> String {
    format!("CREATE EXTERNAL TABLE theirs STORED AS PUBLICATION LOCATION '{}'", here.join("hospital").display())
}

/// Checks that all statements on it are refused, and the disk stays. These are declarations and INSERTs; audits fail and say why.
async fn is_refused(here: &Path, expected: &str) {
    let before = files(here);
    let context = session();
    let message = error(&context, &declared(here)).await;
    assert!(message.contains(expected) && message.contains("Publish with the later version"), "{message}");
    assert!(files(here) == before, "{expected}");
}

/// Everything that a ledger says, with more in it.
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_says_more_is_not_continued() {
    let whole = published().await;
    let again = copy_of(whole.path());
    rewritten(again.path(), nothing, nothing);
    let context = session();
    run(&context, &declared(again.path())).await.unwrap();
    assert_eq!(count(&context, Q2).await, 11);
    assert_eq!(number(&context, "SELECT count(*) FROM audit(hospital) WHERE NOT passed").await, 0);

    let later = copy_of(whole.path());
    rewritten(later.path(), |settings| drop(settings.insert("anonymize.format".to_owned(), "2".into())), nothing);
    is_refused(later.path(), "is of format 2, and this version").await;
    let setting = copy_of(whole.path());
    rewritten(setting.path(), |settings| drop(settings.insert("anonymize.next".to_owned(), "2".into())), nothing);
    is_refused(setting.path(), "has a setting that this version").await;
    for place in ["", "/method", "/roles"] {
        let terms = copy_of(whole.path());
        rewritten(terms.path(), |settings| inside(settings, "anonymize.terms", add(place)), nothing);
        is_refused(terms.path(), "agrees on says something that this version").await;
    }
    for (key, place) in [
        ("anonymize", ""),
        ("anonymize", "/figures"),
        ("anonymize", "/files/0"),
        ("anonymizeLedger", ""),
        ("anonymizeLedger", "/entries/0"),
        ("anonymizeLedger", "/entries/0/file"),
    ] {
        let commit = copy_of(whole.path());
        rewritten(commit.path(), nothing, |said| inside(said, key, add(place)));
        is_refused(commit.path(), "version 1 of it says something that this version").await;
    }
    let key = copy_of(whole.path());
    rewritten(key.path(), nothing, |said| drop(said.insert("anonymizeNext".to_owned(), "{}".into())));
    is_refused(key.path(), "version 1 of it says something that this version").await;
    // Of a version that wrote no format down.
    let former = copy_of(whole.path());
    let mut first = Commit::read(former.path(), "hospital.private", 0);
    first.settings().remove("anonymize.format");
    first.write();
    let message = error(&session(), &declared(former.path())).await;
    assert!(message.contains("does not say its format") && message.contains("begin a new publication"), "{message}");
}

/// A publisher has declared it, and then a later version publishes.
#[tokio::test(flavor = "multi_thread")]
async fn an_audit_says_that_a_later_version_wrote_the_ledger() {
    let here = published().await;
    let context = session();
    run(&context, &declared(here.path())).await.unwrap();
    let failed = "SELECT count(*) FROM audit(hospital) WHERE NOT passed AND \"check\" = 'ledger: can be read'
                  AND figures LIKE 'it says more than this version of the program knows%'";
    assert_eq!(number(&context, failed).await, 0);
    let mut next = Commit::read(here.path(), "hospital.private", 0);
    next.settings().insert("anonymize.format".to_owned(), "7".into());
    next.actions.retain(|action| action.get("metaData").is_some());
    next.actions.extend(
        Commit::read(here.path(), "hospital.private", 1)
            .actions
            .into_iter()
            .filter(|action| action.get("commitInfo").is_some()),
    );
    next.file.set_file_name(format!("{:020}.json", 2));
    next.write();
    let before = files(here.path());
    let message = error(&context, Q2).await;
    assert!(message.contains("is of format 7, and this version"), "{message}");
    assert_eq!(number(&context, failed).await, 1);
    assert!(files(here.path()) == before);
}

/// Readers have no ledger: what the public table says must be known as well.
#[tokio::test(flavor = "multi_thread")]
async fn a_public_table_that_says_more_is_not_vouched_for() {
    let whole = published().await;
    let later = copy_of(whole.path());
    let mut first = Commit::read(later.path(), "hospital", 0);
    first.settings().insert("anonymize.format".to_owned(), "2".into());
    first.write();
    // The first release says the settings again.
    let mut second = Commit::read(later.path(), "hospital", 1);
    second.settings().insert("anonymize.format".to_owned(), "2".into());
    second.write();
    let context = session();
    let expected = "public table at";
    let message = match run(&context, &theirs(later.path())).await {
        Ok(_) => error(&context, "SELECT * FROM releases(theirs)").await,
        Err(error) => error.to_string(),
    };
    assert!(message.contains(expected) && message.contains("is of format 2"), "{message}");
    is_refused(later.path(), "is of format 2, and this version").await;

    // A parameter that this version does not know: nobody here can tell against whom the release holds.
    let parameters = copy_of(whole.path());
    let mut commit = Commit::read(parameters.path(), "hospital", 1);
    inside(commit.of("commitInfo"), "anonymize", |said| {
        inside(said.as_object_mut().unwrap(), "parameters", add(""));
    });
    commit.write();
    let context = session();
    run(&context, &theirs(parameters.path())).await.unwrap();
    assert_eq!(number(&context, "SELECT count(*) FROM releases(theirs) WHERE reader IS NULL").await, 1);
    let unknown = "SELECT count(*) FROM audit(theirs) WHERE NOT passed AND \"check\" = 'the method is known'";
    assert_eq!(number(&context, unknown).await, 1);
}

/// A later version's setting, commit and announcement are not vouched for. The setting is of the public table.
#[tokio::test(flavor = "multi_thread")]
async fn releases_that_say_more_are_not_vouched_for() {
    let whole = published().await;
    let setting = copy_of(whole.path());
    for version in [0, 1] {
        let mut commit = Commit::read(setting.path(), "hospital", version);
        commit.settings().insert("anonymizeNext".to_owned(), "2".into());
        commit.write();
    }
    let expected = "has a setting that this version";
    is_refused(setting.path(), expected).await;
    let context = session();
    let message = match run(&context, &theirs(setting.path())).await {
        Ok(_) => error(&context, "SELECT * FROM audit(theirs)").await,
        Err(error) => error.to_string(),
    };
    assert!(message.contains(expected) && message.contains("a later version wrote it"), "{message}");

    for place in [None, Some(""), Some("/figures")] {
        let later = copy_of(whole.path());
        let mut commit = Commit::read(later.path(), "hospital", 1);
        match place {
            None => drop(commit.of("commitInfo").insert("anonymizeNext".to_owned(), "{}".into())),
            Some(place) => inside(commit.of("commitInfo"), "anonymize", add(place)),
        }
        commit.write();
        let expected = "release 1 in the public table says something that this version";
        let before = files(later.path());
        let context = session();
        let message = match run(&context, &declared(later.path())).await {
            Ok(_) => error(&context, Q2).await,
            Err(error) => error.to_string(),
        };
        assert!(
            message.contains(expected) && message.contains("Publish with the later version"),
            "{place:?}: {message}"
        );
        assert!(files(later.path()) == before, "{place:?}");
        let context = session();
        let message = match run(&context, &theirs(later.path())).await {
            Ok(_) => {
                let failed =
                    "SELECT count(*) FROM audit(theirs) WHERE NOT passed AND \"check\" = 'public table: can be read'
                              AND figures LIKE 'it says more than this version of the program knows%'";
                assert_eq!(number(&context, failed).await, 1, "{place:?}");
                for asks in ["releases(theirs)", "release(theirs, 1)", "estimated(theirs)"] {
                    let message = error(&context, &format!("SELECT count(*) FROM {asks}")).await;
                    assert!(message.contains(expected), "{asks}: {message}");
                }
                error(&context, "SELECT reader FROM releases(theirs)").await
            }
            Err(error) => error.to_string(),
        };
        assert!(message.contains(expected), "{place:?}: {message}");
    }
}

/// Goes on with a publication of two INSERTs that began elsewhere, and checks it.
async fn goes_on(stored: &Path) {
    let here = copy_of(stored);
    let context = session();
    let read = |name: &str| std::fs::read_to_string(here.path().join(name)).unwrap();
    run(&context, &read("declare.sql").replace("LOCATION '", &format!("LOCATION '{}/", here.path().display())))
        .await
        .unwrap();
    let before = number(&context, "SELECT max(release) FROM releases(stored)").await;
    run(&context, &read("insert.sql")).await.unwrap();
    assert_eq!(number(&context, "SELECT max(release) FROM releases(stored)").await, before + 1, "{stored:?}");
    assert_eq!(number(&context, "SELECT count(*) FROM audit(stored) WHERE NOT passed").await, 0, "{stored:?}");
}

/// Publications as versions of this program have left them. `tests/ledgers/VERSION/NAME` of a released version has the two tables of a publication
/// `stored`, its declaration (`declare.sql`, with a relative LOCATION) and the next INSERT (`insert.sql`).
#[tokio::test(flavor = "multi_thread")]
async fn ledgers_of_released_versions_are_continued() {
    // One that this version has made, in such a folder.
    let here = tempdir().unwrap();
    let declare = "CREATE EXTERNAL TABLE stored (id BIGINT, age BIGINT, disease VARCHAR) STORED AS PUBLICATION LOCATION 'stored' OPTIONS \
                   ('method' 'm_invariant', 'm' '3', 'id' 'id', 'quasi' 'age', 'sensitive' 'disease')";
    let insert = |from: usize| {
        format!(
            "INSERT INTO stored SELECT value, value % 90, concat('d', value % 7) FROM generate_series({from}, {from} + 69)"
        )
    };
    let context = session();
    run(&context, &declare.replace("'stored'", &format!("'{}/stored'", here.path().display()))).await.unwrap();
    run(&context, &insert(1)).await.unwrap();
    std::fs::write(here.path().join("declare.sql"), declare).unwrap();
    std::fs::write(here.path().join("insert.sql"), insert(8)).unwrap();
    goes_on(here.path()).await;
    for version in std::fs::read_dir(path("tests/ledgers")).into_iter().flatten() {
        for stored in std::fs::read_dir(version.unwrap().path()).unwrap() {
            goes_on(&stored.unwrap().path()).await;
        }
    }
}
