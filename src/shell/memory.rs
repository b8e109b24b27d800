//! How much memory there is.

use std::fs;

/// Bytes of memory that this process can have, as far as the operating system says: of the machine, or of its control group if that has
/// less. `None` where it is not known.
pub(crate) fn of_the_machine() -> Option<usize> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let group = groups.iter().find_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok());
    machine.into_iter().chain(group).min()
}

/// Of `/proc/meminfo`.
fn total(text: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read() {
        assert_eq!(total("MemTotal:       24000000 kB\nMemFree: 1 kB\n"), Some(24_000_000 * 1024));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        if cfg!(target_os = "linux") {
            assert!(of_the_machine().is_some_and(|bytes| bytes > 1 << 26));
        }
    }
}
