//! Memory that the process can have.

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes that the program takes beside what queries are charged for, whatever they do: itself, stacks, caches.
const ITSELF: usize = 64 << 20;

/// Returns the bytes of memory that this process can have, by the operating system. They are those of the machine,
/// or of one of its control groups if that has fewer. `None` where it is not known.
pub(crate) fn of_the_machine() -> Option<usize> {
    under(Path::new("/"))
}

/// Returns the default limit of queries, of so many bytes that the process can have: three quarters of what the program leaves. The rest is for what
/// is freed and not yet given back, and for what nobody is charged for.
pub(super) fn of_queries(there: usize) -> usize {
    there.saturating_sub(ITSELF).max(there / 4) / 4 * 3
}

pub(super) fn too_much(limit: usize, there: usize) -> String {
    let mebibytes = |bytes: usize| bytes >> 20;
    format!(
        "Notice: --memory-limit is {} MiB, and this process can have {} MiB: the operating system would end it without a word; write --memory-limit \
         {}m",
        mebibytes(limit),
        mebibytes(there),
        mebibytes(of_queries(there))
    )
}

/// Returns the same by the files of a system whose root is `root`.
fn under(root: &Path) -> Option<usize> {
    let machine = fs::read_to_string(root.join("proc/meminfo")).ok().and_then(|text| total(&text));
    machine.into_iter().chain(of_groups(root)).min()
}

fn total(text: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Returns the least limit of the control groups that the process is in: its own ones and those around them, of both versions.
fn of_groups(root: &Path) -> Option<usize> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    let mounts: Vec<Mount> = mounts.lines().filter_map(Mount::parse).collect();
    let limits = groups.lines().filter_map(|line| {
        // Hierarchy, controllers, path.
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let version = match (number, controllers) {
            ("0", "") => Version::Two,
            (_, controllers) if controllers.split(',').any(|name| name == "memory") => Version::One,
            _ => return None,
        };
        mounts.iter().filter(|mount| mount.version == version).filter_map(|mount| mount.limit(root, path)).min()
    });
    limits.min()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Place where control groups are folders.
#[derive(Debug)]
struct Mount {
    version: Version,
    /// The group that the place shows.
    group: PathBuf,
    place: PathBuf,
}

impl Mount {
    /// Reads a line of `/proc/self/mountinfo`, if memory is counted there.
    fn parse(line: &str) -> Option<Self> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut file_system = file_system.split(' ');
        let version = match (file_system.next()?, file_system.nth(1)) {
            ("cgroup2", _) => Version::Two,
            ("cgroup", Some(options)) if options.split(',').any(|name| name == "memory") => Version::One,
            _ => return None,
        };
        let mut parts = mount.split(' ').skip(3);
        let (group, place) = (unescaped(parts.next()?), unescaped(parts.next()?));
        Some(Self { version, group: group.into(), place: place.into() })
    }

    /// Returns the least limit from the group `path` up to the place's.
    fn limit(&self, root: &Path, path: &str) -> Option<usize> {
        // In a container without a namespace of its own, the place shows the container's group, and paths begin at the machine's. A group outside of what
        // is shown is nowhere to be seen, and what is shown is what there is.
        let below = Path::new(path).strip_prefix(&self.group).ok().filter(|below| !below.starts_with(".."));
        let place = root.join(self.place.strip_prefix("/").unwrap_or(&self.place));
        let own = place.join(below.unwrap_or_else(|| Path::new("")));
        let folders = own.ancestors().take_while(|folder| folder.starts_with(&place));
        folders.filter_map(|folder| self.version.limit(folder)).min()
    }
}

impl Version {
    /// Returns what a group's files say of its limit.
    fn limit(self, folder: &Path) -> Option<usize> {
        let number = |file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok();
        match self {
            // Beyond the second, the process is slowed down until it hardly moves.
            Self::Two => ["memory.max", "memory.high"].into_iter().filter_map(number).min(),
            // Groups around a container are not shown in it, and count.
            Self::One => {
                let text = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
                let around = text.lines().find_map(|line| line.strip_prefix("hierarchical_memory_limit "));
                let around = around.and_then(|limit| limit.trim().parse().ok());
                number("memory.limit_in_bytes").into_iter().chain(around).min()
            }
        }
    }
}

/// Returns a path of `/proc/self/mountinfo`, where blanks and the like are three octal digits.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut path = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                path.push(char::from(byte));
                path.push_str(&part[3..]);
            }
            None => {
                path.push('\\');
                path.push_str(part);
            }
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: (&str, &str) = ("proc/meminfo", "MemTotal:       24000000 kB\nMemFree: 1 kB\n");

    /// Returns what a system with these files lets the process have.
    fn found(files: &[(&str, &str)]) -> Option<usize> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [MACHINE].iter().chain(files) {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        under(root.path())
    }

    const TWO: &str = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn memory_is_read() {
        assert_eq!(total(MACHINE.1), Some(24_000_000 * 1024));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        assert_eq!(found(&[]), Some(24_000_000 * 1024));
        if cfg!(target_os = "linux") {
            assert!(of_the_machine().is_some_and(|bytes| bytes > 1 << 26));
        }
    }

    /// The least limit counts, also of a unit's slice under systemd.
    #[test]
    fn the_least_limit_from_the_own_group_to_the_root_counts() {
        let own = "sys/fs/cgroup/system.slice/anonymize.service";
        let with = |group: &str, slice: &str, high: &str| {
            found(&[
                ("proc/self/cgroup", "0::/system.slice/anonymize.service\n"),
                ("proc/self/mountinfo", TWO),
                (&format!("{own}/memory.max"), group),
                (&format!("{own}/memory.high"), high),
                ("sys/fs/cgroup/system.slice/memory.max", slice),
                // Of others.
                ("sys/fs/cgroup/system.slice/other.service/memory.max", "1000\n"),
            ])
        };
        assert_eq!(with("536870912\n", "max\n", "max\n"), Some(512 << 20));
        assert_eq!(with("536870912\n", "268435456\n", "max\n"), Some(256 << 20));
        assert_eq!(with("536870912\n", "max\n", "134217728\n"), Some(128 << 20));
        assert_eq!(with("max\n", "max\n", "max\n"), Some(24_000_000 * 1024));
    }

    #[test]
    fn containers_see_their_own_group() {
        // With a namespace of its own: the root is the container's.
        let max = ("sys/fs/cgroup/memory.max", "536870912\n");
        assert_eq!(found(&[("proc/self/cgroup", "0::/\n"), ("proc/self/mountinfo", TWO), max]), Some(512 << 20));
        // Entered from outside.
        let outside = ("proc/self/cgroup", "0::/../other\n");
        assert_eq!(found(&[outside, ("proc/self/mountinfo", TWO), max]), Some(512 << 20));
        // Without one: the place shows a group below the machine's root, and has a blank in its name.
        let shown = TWO.replace("0:26 / /sys/fs/cgroup", "0:26 /docker/abc /sys/fs/control\\040groups");
        let max = ("sys/fs/control groups/job/memory.max", "536870912\n");
        let own = ("proc/self/cgroup", "0::/docker/abc/job\n");
        assert_eq!(found(&[own, ("proc/self/mountinfo", &shown), max]), Some(512 << 20));
    }

    /// Both versions may exist at once; the first has a hierarchy for each controller.
    #[test]
    fn groups_of_the_first_version_count() {
        let mounts = "31 30 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
                      33 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      34 30 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let groups = "9:memory:/batch/job\n3:cpu,cpuacct:/\n0::/other\n";
        let unlimited = "9223372036854771712\n";
        let with = |job: &str, batch: &str, stat: &str| {
            found(&[
                ("proc/self/cgroup", groups),
                ("proc/self/mountinfo", mounts),
                ("sys/fs/cgroup/memory/batch/job/memory.limit_in_bytes", job),
                ("sys/fs/cgroup/memory/batch/memory.limit_in_bytes", batch),
                ("sys/fs/cgroup/memory/batch/job/memory.stat", stat),
            ])
        };
        assert_eq!(with("536870912\n", unlimited, ""), Some(512 << 20));
        assert_eq!(with(unlimited, "268435456\n", ""), Some(256 << 20));
        assert_eq!(with(unlimited, unlimited, "cache 0\nhierarchical_memory_limit 134217728\n"), Some(128 << 20));
    }

    #[test]
    fn queries_leave_room_for_the_program() {
        assert_eq!(of_queries(24 << 30), ((24 << 30) - ITSELF) / 4 * 3);
        assert_eq!(of_queries(512 << 20), 336 << 20);
        assert_eq!(of_queries(32 << 20), 6 << 20);
        let said = too_much(8 << 30, 512 << 20);
        assert!(said.contains("is 8192 MiB, and this process can have 512 MiB") && said.contains("336m"), "{said}");
    }
}
