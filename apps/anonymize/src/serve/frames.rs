//! Messages between the server and the processes that run statements.
//!
//! A frame is a letter, the length of its body, and the body: JSON, or rows as PostgreSQL's protocol has them.

use std::io::{Error, ErrorKind, Read, Result};

use bytes::{Buf, BufMut, BytesMut};
use pgwire::messages::data::DataRow;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::errors::Failure;

const HEAD: usize = 5;
/// Bytes of a frame: the server holds a few of each statement.
pub(super) const LARGEST: usize = 16 << 20;

/// A statement that a process is to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Question {
    pub user: String,
    /// The text of the message that the statement is in.
    pub sql: String,
    /// Its place in the text.
    pub place: usize,
    /// Values of parameters. `None` to describe the statement and not to run it.
    pub given: Option<Given>,
}

/// Values of parameters, and forms of columns, as a `Bind` message has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Given {
    /// Types that the reader's program has named.
    pub types: Vec<Option<u32>>,
    pub formats: Vec<i16>,
    /// Values in base64.
    pub values: Vec<Option<String>>,
    pub columns: Vec<i16>,
}

/// A column of an answer: its name and PostgreSQL's number of its type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shown(pub String, pub u32);

/// Describes a statement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Described {
    /// Numbers of the parameters' types.
    pub parameters: Vec<u32>,
    pub columns: Vec<Shown>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    /// To a process: run this.
    Ask(Box<Question>),
    /// To a process: stop what runs.
    Cancel,
    /// From a process: everything is open.
    Ready,
    Described(Described),
    /// The statement takes long: it may have to wait, and to begin again.
    Heavy,
    /// The columns of the rows that follow.
    Columns(Vec<Shown>),
    /// Rows, as [`pack`] writes them.
    Rows(BytesMut),
    Failed(Failure),
    /// The last message about a statement that has not failed.
    Done,
}

impl Frame {
    /// Returns the bytes of the frame.
    /// Fails when the frame is too large.
    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        let (kind, body) = match self {
            Self::Ask(question) => (b'A', serde_json::to_vec(question)?),
            Self::Cancel => (b'X', Vec::new()),
            Self::Ready => (b'R', Vec::new()),
            Self::Described(described) => (b'S', serde_json::to_vec(described)?),
            Self::Heavy => (b'H', Vec::new()),
            Self::Columns(columns) => (b'C', serde_json::to_vec(columns)?),
            Self::Rows(rows) => (b'D', rows.to_vec()),
            Self::Failed(failure) => (b'E', serde_json::to_vec(failure)?),
            Self::Done => (b'Z', Vec::new()),
        };
        if body.len() > LARGEST {
            return Err(Error::from(ErrorKind::FileTooLarge));
        }
        let mut bytes = Vec::with_capacity(HEAD + body.len());
        bytes.put_u8(kind);
        bytes.put_u32(body.len() as u32);
        bytes.extend_from_slice(&body);
        Ok(bytes)
    }

    fn decode(kind: u8, body: BytesMut) -> Result<Self> {
        fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
            Ok(serde_json::from_slice(body)?)
        }
        Ok(match kind {
            b'A' => Self::Ask(json(&body)?),
            b'X' => Self::Cancel,
            b'R' => Self::Ready,
            b'S' => Self::Described(json(&body)?),
            b'H' => Self::Heavy,
            b'C' => Self::Columns(json(&body)?),
            b'D' => Self::Rows(body),
            b'E' => Self::Failed(json(&body)?),
            b'Z' => Self::Done,
            _ => return Err(Error::from(ErrorKind::InvalidData)),
        })
    }

    /// Reads a frame.
    /// Fails at the end of the input, and when it holds no frame.
    pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> Result<Self> {
        let mut head = [0; HEAD];
        from.read_exact(&mut head).await?;
        let mut body = body(&head)?;
        from.read_exact(&mut body).await?;
        Self::decode(head[0], body)
    }

    /// Reads a frame on a thread of its own.
    /// Fails as [`Frame::read`] does.
    pub(super) fn read_blocking(from: &mut impl Read) -> Result<Self> {
        let mut head = [0; HEAD];
        from.read_exact(&mut head)?;
        let mut body = body(&head)?;
        from.read_exact(&mut body)?;
        Self::decode(head[0], body)
    }
}

fn body(head: &[u8; HEAD]) -> Result<BytesMut> {
    let mut length = &head[1..];
    let length = length.get_u32() as usize;
    if length > LARGEST {
        return Err(Error::from(ErrorKind::InvalidData));
    }
    Ok(BytesMut::zeroed(length))
}

pub(super) fn pack(rows: &mut BytesMut, row: &DataRow) {
    rows.put_i16(row.field_count);
    rows.put_u32(row.data.len() as u32);
    rows.extend_from_slice(&row.data);
}

/// Splits a body of rows into rows. What is no row ends them.
pub(super) fn unpack(mut rows: BytesMut) -> Vec<DataRow> {
    let mut unpacked = Vec::new();
    while rows.len() >= 6 {
        let field_count = rows.get_i16();
        let length = (rows.get_u32() as usize).min(rows.len());
        unpacked.push(DataRow::new(rows.split_to(length), field_count));
    }
    unpacked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_come_as_they_were_sent() {
        let mut rows = BytesMut::new();
        for text in ["a", "", "a longer one"] {
            pack(&mut rows, &DataRow::new(BytesMut::from(text.as_bytes()), 3));
        }
        assert_eq!(unpack(rows.clone()).iter().map(|row| row.data.len()).collect::<Vec<_>>(), [1, 0, 12]);
        let given = Given { values: vec![None, Some("AA==".to_owned())], ..Given::default() };
        let question = Question { user: "ann".to_owned(), sql: "SELECT 1".to_owned(), place: 0, given: Some(given) };
        let frames = [
            Frame::Ask(Box::new(question)),
            Frame::Cancel,
            Frame::Ready,
            Frame::Described(Described { parameters: vec![25], columns: vec![Shown("a".to_owned(), 20)] }),
            Frame::Heavy,
            Frame::Columns(Vec::new()),
            Frame::Rows(rows),
            Frame::Failed(Failure::new("42601", "no").hint("yes")),
            Frame::Done,
        ];
        let bytes: Vec<u8> = frames.iter().flat_map(|frame| frame.encode().expect("small")).collect();
        let (mut blocking, mut waiting) = (bytes.as_slice(), bytes.as_slice());
        for frame in &frames {
            assert_eq!(&Frame::read_blocking(&mut blocking).expect("a frame"), frame);
            assert_eq!(&Frame::read(&mut waiting).await.expect("a frame"), frame);
        }
        assert!(Frame::read_blocking(&mut blocking).is_err());
        assert!(Frame::read_blocking(&mut &b"D\xff\xff\xff\xff"[..]).is_err());
        assert!(Frame::Rows(BytesMut::zeroed(LARGEST + 1)).encode().is_err());
    }
}
