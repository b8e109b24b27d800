//! Deletion vectors of Delta tables, as Spark writes them: a commit that says which rows of a file are deleted, and leaves the file.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};

/// Begins a vector.
const MAGIC: u32 = 1_681_511_377;
const Z85: &[u8; 85] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// Adds a commit that deletes rows of the table's only file by their places. Its vector is in the log itself.
pub(super) fn delete_rows(table: &Path, version: u64, rows: &[u16]) {
    let log = table.join("_delta_log");
    let before = std::fs::read_to_string(log.join(format!("{:020}.json", version - 1))).unwrap();
    let actions: Vec<Value> = before.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let add = actions.iter().find_map(|action| action.get("add")).unwrap();
    let bytes = bitmap(rows);
    let mut deleted = add.clone();
    deleted["deletionVector"] = json!({
        "storageType": "i", "pathOrInlineDv": z85(&bytes), "sizeInBytes": bytes.len(), "cardinality": rows.len()
    });
    let protocol = json!({"protocol": {
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]
    }});
    let remove = json!({"remove": {"path": add["path"], "deletionTimestamp": 1, "dataChange": true}});
    let mut text = String::new();
    for action in [protocol, remove, json!({"add": deleted})] {
        writeln!(text, "{action}").unwrap();
    }
    std::fs::write(log.join(format!("{version:020}.json")), text).unwrap();
}

/// Returns a 64-bit Roaring bitmap with one array container, behind Delta's magic number. It has the portable format.
fn bitmap(rows: &[u16]) -> Vec<u8> {
    let mut bytes = MAGIC.to_le_bytes().to_vec();
    bytes.extend(1_u64.to_le_bytes());
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend(12_346_u32.to_le_bytes());
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(0_u16.to_le_bytes());
    bytes.extend((rows.len() as u16 - 1).to_le_bytes());
    bytes.extend(16_u32.to_le_bytes());
    rows.iter().for_each(|row| bytes.extend(row.to_le_bytes()));
    bytes
}

/// Encodes four bytes as five characters; the last ones are filled up with zeros.
fn z85(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(4) {
        let mut four = [0; 4];
        four[..chunk.len()].copy_from_slice(chunk);
        let number = u32::from_be_bytes(four);
        for power in (0..5).rev() {
            text.push(char::from(Z85[(number / 85_u32.pow(power) % 85) as usize]));
        }
    }
    text
}
