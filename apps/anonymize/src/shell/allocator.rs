//! Delay after which mimalloc gives freed memory back to the system.

use std::ffi::{c_int, c_long};

/// Number of the option, in versions 2 and 3.
const PURGE_DELAY: c_int = 15;

/// Milliseconds. A release frees as much in its first second as it holds later on, in pieces too small for what it needs next: the default, a second,
/// took a quarter more memory, and no less time.
const DELAY: c_long = 50;

#[expect(
    unsafe_code,
    reason = "mimalloc's functions, which are in the program: these two read and set a number, under any number of an option"
)]
unsafe extern "C" {
    safe fn mi_option_set_default(option: c_int, value: c_long);
    #[cfg(test)]
    safe fn mi_option_get(option: c_int) -> c_long;
}

/// Makes the allocator give back sooner, unless `MIMALLOC_PURGE_DELAY` in the environment says how soon.
pub(crate) fn keep_less() {
    mi_option_set_default(PURGE_DELAY, DELAY);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number is that of the option which the environment calls so: it was a second, or what is said there.
    #[test]
    fn the_delay_is_shorter_unless_the_environment_says_so() {
        let said = std::env::var("MIMALLOC_PURGE_DELAY").ok().map(|delay| delay.parse::<c_long>().unwrap());
        assert_eq!(mi_option_get(PURGE_DELAY), said.unwrap_or(1000));
        keep_less();
        assert_eq!(mi_option_get(PURGE_DELAY), said.unwrap_or(DELAY));
        if said.is_none() {
            let again = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "shell::allocator::tests::the_delay_is_shorter_unless_the_environment_says_so"])
                .env("MIMALLOC_PURGE_DELAY", "7")
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&again.stdout);
            assert!(again.status.success() && text.contains("1 passed"), "{text}");
        }
    }
}
