//! Memory and disk that queries may use.

use std::env;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, GreedyMemoryPool, MemoryPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion_cli::pool_type::PoolType;

use super::memory;

/// Consumers named in the error when memory runs out.
const NAMED_CONSUMERS: NonZeroUsize = NonZeroUsize::new(3).unwrap();

/// Share of the machine that queries may use.
#[derive(Debug, clap::Args)]
pub(crate) struct Limits {
    /// Memory that queries may use, such as 500m or 8g; by default three quarters of what the process can have, where that is known: the machine's, or its
    /// control groups'. The process takes more: 64 MiB for itself, and up to a third of the limit for what is freed and not yet given back
    #[arg(short = 'm', long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory_limit: Option<usize>,

    /// Division of the memory among queries: greedy or fair
    #[arg(long, default_value_t = PoolType::Fair)]
    pub(crate) mem_pool_type: PoolType,

    /// Disk that queries may use for spilling, such as 100g
    #[arg(short = 'd', long, value_name = "SIZE", value_parser = size)]
    pub(crate) disk_limit: Option<usize>,
}

impl Limits {
    /// Makes a runtime within the limits.
    /// Fails when what does not fit the memory has nowhere to go.
    pub(super) fn runtime(&self) -> Result<RuntimeEnvBuilder> {
        let mut runtime = RuntimeEnvBuilder::new();
        // Whoever says nothing should meet an error, or slower queries, before the operating system ends the process.
        let there = memory::of_the_machine();
        if let Some((limit, there)) = self.memory_limit.zip(there).filter(|(limit, there)| limit > there) {
            eprintln!("{}", memory::too_much(limit, there));
        }
        if let Some(limit) = self.memory_limit.or_else(|| there.map(memory::of_queries)) {
            let pool: Arc<dyn MemoryPool> = match self.mem_pool_type {
                PoolType::Fair => Arc::new(TrackConsumersPool::new(FairSpillPool::new(limit), NAMED_CONSUMERS)),
                PoolType::Greedy => Arc::new(TrackConsumersPool::new(GreedyMemoryPool::new(limit), NAMED_CONSUMERS)),
            };
            runtime = runtime.with_memory_pool(pool);
        }
        check_temporary_folder(&env::temp_dir())?;
        if let Some(limit) = self.disk_limit {
            let disk = DiskManagerBuilder::default()
                .with_mode(DiskManagerMode::OsTmpDirectory)
                .with_max_temp_directory_size(limit as u64);
            runtime = runtime.with_disk_manager_builder(disk);
        }
        Ok(runtime)
    }
}

/// # Errors
/// When what does not fit the memory has nowhere to go, which a query would find out late.
fn check_temporary_folder(folder: &Path) -> Result<()> {
    match folder.is_dir() {
        true => Ok(()),
        false => plan_err!(
            "the folder for what does not fit the memory is not there: {} ({}); create it, or set TMPDIR to another one",
            folder.display(),
            if folder.exists() { "it is no folder" } else { "TMPDIR names it" }
        ),
    }
}

/// Reads bytes in powers of 1024: `512`, `500m`, `8g`.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let power = match text[digits.len()..].trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return Err(format!("'{text}' has an unknown unit; write 500m or 8g")),
    };
    let number: usize = digits.parse().map_err(|_| format!("'{text}' is not a size; write 500m or 8g"))?;
    let bytes = 1024_usize.pow(power).checked_mul(number).filter(|&bytes| bytes > 0);
    bytes.ok_or_else(|| format!("'{text}' is not a possible size"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("512"), Ok(512));
        assert_eq!(size("2k"), Ok(2048));
        assert_eq!(size("3GB"), Ok(3 << 30));
        assert_eq!(size("1MiB"), Ok(1 << 20));
        for wrong in ["", "g", "1x", "-1m", "0", "999999999999t"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
