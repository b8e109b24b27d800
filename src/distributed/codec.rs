//! Operators as bytes.
//!
//! ```text
//! magic (8) | length of the version (1), version | length of the node (4, little endian), node as JSON | columns as an Arrow IPC stream
//! ```

use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use serde::{Deserialize, Serialize};

use super::VERSION;
use super::guard::{GuardExec, Guards};
use crate::error::{AnonymizeError, ErrorKind};
use crate::exec::Shipped;

const MAGIC: [u8; 8] = *b"dfanonym";

/// Encodes the operators that a worker can have: those that make releases, and the one that repositions a stream. What publishes, and what
/// computes a table about releases, has no encoding: it belongs on the coordinator.
///
/// A worker of another version refuses, with both versions named, before a row is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnonymizeCodec;

#[derive(Serialize, Deserialize)]
enum Node {
    Operator(Box<Shipped>),
    Guard(Guards),
}

fn encode(node: &Node, schema: &Schema, to: &mut Vec<u8>) -> Result<()> {
    let json = serde_json::to_vec(node).map_err(|_| internal_datafusion_err!("an operator that is not plain data"))?;
    let (Ok(version), Ok(length)) = (u8::try_from(VERSION.len()), u32::try_from(json.len())) else {
        return internal_err!("an operator that is too long");
    };
    to.extend_from_slice(&MAGIC);
    to.push(version);
    to.extend_from_slice(VERSION.as_bytes());
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(&json);
    StreamWriter::try_new(&mut *to, schema)?.finish()?;
    Ok(())
}

fn decode(bytes: &[u8]) -> Result<(Node, SchemaRef)> {
    let malformed = || internal_datafusion_err!("a plan with an operator of datafusion-anonymize that cannot be read");
    let bytes = bytes.strip_prefix(&MAGIC).ok_or_else(|| internal_datafusion_err!("an operator of another crate"))?;
    let (length, bytes) = bytes.split_first().ok_or_else(malformed)?;
    let (version, bytes) = bytes.split_at_checked(usize::from(*length)).ok_or_else(malformed)?;
    if version != VERSION.as_bytes() {
        let theirs = String::from_utf8_lossy(version);
        let text = format!("the coordinator is {theirs}, and this worker is {VERSION}; run the same version on both");
        return Err(AnonymizeError::new("cluster", ErrorKind::Refused, text).into());
    }
    let (length, bytes) = bytes.split_first_chunk::<4>().ok_or_else(malformed)?;
    let (json, schema) = bytes.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(malformed)?;
    let node = serde_json::from_slice(json).map_err(|_| malformed())?;
    Ok((node, StreamReader::try_new(schema, None)?.schema()))
}

impl PhysicalExtensionCodec for AnonymizeCodec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        _ctx: &TaskContext,
        _proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (decode(buf)?, inputs) {
            ((Node::Operator(operator), schema), inputs) => operator.over(schema, inputs.to_vec()),
            ((Node::Guard(guards), _), [input]) => Ok(Arc::new(GuardExec::over(input, guards)?)),
            ((Node::Guard(_), _), _) => internal_err!("GuardExec has one input"),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        _proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        if let Some(guard) = node.downcast_ref::<GuardExec>() {
            return encode(&Node::Guard(guard.guards().clone()), &Schema::empty(), buf);
        }
        match Shipped::of(node.as_ref()) {
            Some((operator, schema)) => encode(&Node::Operator(Box::new(operator)), &schema, buf),
            None => internal_err!("{} belongs on the coordinator and is not sent to workers", node.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::Origin;

    #[test]
    fn a_node_arrives_as_it_was_sent() {
        let schema = Schema::empty();
        let origin = Origin { function: "anatomy".to_owned(), argument: "the input".to_owned(), names: Vec::new() };
        let mut bytes = Vec::new();
        let guards = Guards { origin: Some(Arc::new(origin)), travels: true };
        encode(&Node::Guard(guards.clone()), &schema, &mut bytes).unwrap();
        let (Node::Guard(arrived), columns) = decode(&bytes).unwrap() else { panic!("another node") };
        assert_eq!((arrived.origin, arrived.travels), (guards.origin, true));
        assert_eq!(columns.as_ref(), &schema);
    }

    #[test]
    fn another_version_is_refused_with_both_named() {
        let mut bytes = Vec::new();
        encode(&Node::Guard(Guards::default()), &Schema::empty(), &mut bytes).unwrap();
        let place = MAGIC.len() + VERSION.len();
        bytes[place] = b'x';
        let Err(error) = decode(&bytes) else { panic!("it was taken") };
        let text = error.to_string();
        assert!(text.contains(VERSION) && text.contains("0.1.x"), "{text}");
        assert!(AnonymizeError::of(&error).unwrap().is_refusal());
    }

    #[test]
    fn what_is_cut_off_is_an_error() {
        let mut bytes = Vec::new();
        encode(&Node::Guard(Guards::default()), &Schema::empty(), &mut bytes).unwrap();
        for length in 0..bytes.len().min(60) {
            assert!(decode(&bytes[..length]).is_err(), "{length}");
        }
    }
}
