//! Compares the maps of folders in doc comments with their files.
//!
//! Reads source text, and needs nothing of the library.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Returns the folders of sources of our crates, with the names that failures give them.
fn sources() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = vec![("src".to_owned(), root.join("src"))];
    for group in ["apps", "crates"] {
        let members = std::fs::read_dir(root.join(group)).into_iter().flatten();
        for member in members.map(|member| member.unwrap().path()) {
            let name = format!("{group}/{}/src", member.file_name().unwrap().display());
            found.push((name, member.join("src")));
        }
    }
    found
}

/// Source file of a crate.
struct Source {
    /// The module's path from the root of its crate, which itself has an empty one.
    module: Vec<String>,
    /// The text without tests and comments.
    code: String,
    /// The doc comment of the module.
    docs: String,
}

/// Reads the modules of a crate, without those that only tests have.
fn modules(root: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    for (file, text) in files(root) {
        let inside = file.strip_prefix(root).unwrap().with_extension("");
        let mut module: Vec<String> = inside.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
            module.pop();
        }
        let docs = text.lines().filter_map(|line| line.strip_prefix("//!")).collect::<Vec<_>>().join("\n");
        found.push(Source { module, code: without_tests(&text), docs });
    }
    let tests: BTreeSet<Vec<String>> = found.iter().flat_map(test_modules).collect();
    found.retain(|source| !tests.iter().any(|test| source.module.starts_with(test)));
    found
}

fn files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found
}

/// Removes comments, and what follows the attribute of inline tests.
fn without_tests(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Returns the children that a module declares for tests only.
fn test_modules(source: &Source) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let lines: Vec<&str> = source.code.lines().map(str::trim).collect();
    for pair in lines.windows(2) {
        let name = pair[1].rsplit(' ').next().and_then(|name| name.strip_suffix(';'));
        if let (true, true, Some(name)) = (pair[0].starts_with("#[cfg(test)]"), pair[1].contains("mod "), name) {
            found.push([source.module.as_slice(), &[name.to_owned()]].concat());
        }
    }
    found
}

/// Returns the names in the first column of the table with this header, if any.
fn table(docs: &str, header: &str) -> Option<BTreeSet<String>> {
    let mut rows =
        docs.lines().map(str::trim).skip_while(|line| !line.starts_with(&format!("| {header} |"))).peekable();
    rows.peek()?;
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    let first = rows.filter_map(|row| row.split('|').nth(1));
    Some(first.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()).collect())
}

#[test]
fn maps_name_the_files_of_their_folders() {
    let mut wrong = Vec::new();
    let mut maps = 0;
    for (name, root) in sources() {
        let sources = modules(&root);
        for source in &sources {
            let children: BTreeSet<String> = sources
                .iter()
                .filter(|child| child.module.len() == source.module.len() + 1)
                .filter(|child| child.module.starts_with(&source.module))
                .filter_map(|child| child.module.last().cloned())
                .collect();
            let Some(named) = table(&source.docs, "file") else { continue };
            maps += 1;
            let module = [std::slice::from_ref(&name), source.module.as_slice()].concat().join("/");
            wrong.extend(named.difference(&children).map(|file| format!("{module}: there is no {file}")));
            wrong.extend(children.difference(&named).map(|file| format!("{module}: {file} is not in the map")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(maps >= 4, "only {maps} maps were found");
}
