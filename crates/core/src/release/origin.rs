//! Names of releases in the metadata of private views: `previous` finds missing releases and people by them.
//!
//! Each key ends with the id of a release. An engine that makes one table of several releases drops or overwrites keys that differ in their values. It keeps
//! or drops keys of different names together.

/// Prefix of the metadata keys with the id of a view's release. They are keys of the identifier, the signature and the partners.
pub const OWN: &str = "anonymize.own.";
/// Begins the keys of all earlier releases that the release was made with.
pub const FOLLOWS: &str = "anonymize.follows.";
/// Begins the keys of releases of which a stored copy can lack people.
pub const PART: &str = "anonymize.part.";
/// Key of a file's metadata: the id of its release and how many people are in it, with a blank between them.
pub const PEOPLE: &str = "anonymize.people";
