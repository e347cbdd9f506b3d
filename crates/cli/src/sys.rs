//! The few things that only the operating system can say or do.

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Raises the number of files this process may open as far as it may by itself: each client is one. Answers the number.
#[expect(unsafe_code, reason = "the standard library cannot ask for or set this limit")]
pub(crate) fn raise_open_files() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls get a pointer to a whole `rlimit` that outlives them.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) != 0 {
            return Err(io::Error::last_os_error());
        }
        limit.rlim_cur = limit.rlim_max;
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(limit.rlim_cur)
}

/// A moment by this machine's clock and time zone.
pub(crate) struct LocalTime {
    pub(crate) year: i32,
    pub(crate) month: i32,
    pub(crate) day: i32,
    pub(crate) hour: i32,
    pub(crate) minute: i32,
    pub(crate) second: i32,
}

/// Seconds since 1970 in this machine's time zone; none when they are beyond what it knows.
#[expect(unsafe_code, reason = "the standard library knows no time zones")]
pub(crate) fn local_time(seconds: i64) -> Option<LocalTime> {
    let seconds = libc::time_t::from(seconds);
    let mut parts = MaybeUninit::<libc::tm>::uninit();
    // SAFETY: both pointers are to whole values that outlive the call, which fills the second when it answers it.
    let parts = unsafe {
        if libc::localtime_r(&raw const seconds, parts.as_mut_ptr()).is_null() {
            return None;
        }
        parts.assume_init()
    };
    Some(LocalTime {
        year: parts.tm_year + 1900,
        month: parts.tm_mon + 1,
        day: parts.tm_mday,
        hour: parts.tm_hour,
        minute: parts.tm_min,
        second: parts.tm_sec,
    })
}

/// Bytes that are free for this user where a folder is.
#[expect(unsafe_code, reason = "the standard library cannot ask for free space")]
pub(crate) fn free_bytes(folder: &Path) -> io::Result<u64> {
    let path = CString::new(folder.as_os_str().as_bytes())?;
    let mut answer = MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path ends with NUL, and `statvfs` fills the whole struct when it answers 0.
    let answer = unsafe {
        if libc::statvfs(path.as_ptr(), answer.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        answer.assume_init()
    };
    Ok(answer.f_bavail.saturating_mul(answer.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_temporary_folder_has_some_space_and_a_missing_one_is_an_error() {
        assert!(free_bytes(&std::env::temp_dir()).unwrap() > 0);
        assert!(free_bytes(Path::new("/nowhere/at/all")).is_err());
    }
}
