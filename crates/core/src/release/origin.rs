//! How private views name the releases that they are of, so that one that is missing, or lacks people, is found.
//!
//! Where rows of several releases become one table, an engine drops what metadata of one key says otherwise, or takes what one of them says; keys of
//! their own it keeps or drops together. So the keys of columns end with the id of a release.

/// Begins the metadata keys of the identifier, the signature and the partners of a private view that end with the id of its release.
pub const OWN: &str = "anonymize.own.";
/// The same for the releases that it was made with, and that those were made with.
pub const FOLLOWS: &str = "anonymize.follows.";
/// The same for the releases of which a stored copy can lack people.
pub const PART: &str = "anonymize.part.";
/// Key of a file's metadata: the id of its release and how many people are in it, with a blank between them.
pub const PEOPLE: &str = "anonymize.people";
