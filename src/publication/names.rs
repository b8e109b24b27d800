//! Names that say nothing.

use datafusion::common::{Result, exec_datafusion_err};
use rand::TryRngCore;
use rand::rngs::OsRng;

/// 128 random bits in hexadecimal digits, from the operating system.
///
/// # Errors
/// When the operating system has none.
pub(crate) fn random_name() -> Result<String> {
    let mut bytes = [0; 16];
    OsRng
        .try_fill_bytes(&mut bytes)
        .map_err(|error| exec_datafusion_err!("no randomness from the operating system: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
