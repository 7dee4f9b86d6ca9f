//! Runs a process under `strace` and reads what that wrote: one call per item, with when it began and ended.
//!
//! A call that others overlapped is printed in two parts. Both are put together, and both places are kept.
//! Never: guesses. A line that is not understood, or a string that was cut, is an error.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::PATIENCE;
use super::operation::Moment;

/// Longer than any single write.
const STRING_BYTES_MAX: usize = 64 << 20;

/// Every call that can change a file, its name or a descriptor, and `read` because it moves a file's offset.
const CALLS: &str = "open,openat,openat2,creat,close,close_range,dup,dup2,dup3,fcntl,lseek,read,readv,\
    write,pwrite64,writev,pwritev,pwritev2,ftruncate,truncate,fallocate,\
    rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,chdir,fchdir,\
    fsync,fdatasync,sync_file_range,sync,syncfs,msync,mmap,\
    copy_file_range,sendfile,splice,vmsplice,io_uring_setup,io_submit,fork,vfork,execve";

const UNFINISHED: &str = " <unfinished ...>";
const RESUMED: &str = " resumed>";

/// A call that has returned.
pub(super) struct Call {
    pub(super) begin: Moment,
    pub(super) end: Moment,
    pub(super) name: String,
    pub(super) arguments: Vec<String>,
    /// What it returned, or none if it failed.
    pub(super) result: Option<i64>,
}

/// Runs `command` under `strace`, which writes to `output`.
pub(super) fn run(command: &[&str], output: &Path) -> Result<(), String> {
    let mut traced = Command::new("strace")
        .args(["-f", "--seccomp-bpf", "-qq", "-xx", "-e", "signal=none"])
        .args(["-s", &STRING_BYTES_MAX.to_string()])
        .args(["-e", &format!("trace={CALLS}")])
        .arg("-o")
        .arg(output)
        .args(command)
        .process_group(0)
        .spawn()
        .map_err(|error| format!("could not run strace, which this test needs: {error}"))?;
    let since = Instant::now();
    loop {
        match traced.try_wait().map_err(|error| error.to_string())? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("{} ended with {status}", command.join(" "))),
            None if since.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
            None => {
                // Both strace and what it traces, which would go on without it.
                let group = format!("-{}", traced.id());
                let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
                let _ = traced.wait();
                return Err(format!("{} hangs", command.join(" ")));
            }
        }
    }
}

/// The calls in a file of `strace`, in the order in which they ended; the first line is moment `start`.
pub(super) fn read(path: &Path, start: Moment) -> Result<Vec<Call>, String> {
    let file = std::fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut unfinished: HashMap<String, (Moment, String)> = HashMap::new();
    let mut calls = Vec::new();
    let mut moment = start;
    for line in BufReader::new(file).lines() {
        let line = line.map_err(|error| format!("{}: {error}", path.display()))?;
        let (thread, text) = line.split_once(' ').ok_or_else(|| not_understood(&line))?;
        let text = text.trim_start();
        moment += 2;
        if text.starts_with("+++") || text.starts_with("---") {
            continue;
        }
        let (begin, text) = if let Some(rest) = text.strip_prefix("<... ") {
            let (_, rest) = rest.split_once(RESUMED).ok_or_else(|| not_understood(&line))?;
            let (begin, head) = unfinished.remove(thread).ok_or_else(|| not_understood(&line))?;
            (begin, head + rest)
        } else if let Some(head) = text.strip_suffix(UNFINISHED) {
            unfinished.insert(thread.to_owned(), (moment, head.to_owned()));
            continue;
        } else {
            (moment, text.to_owned())
        };
        calls.push(parse(begin, moment + 1, &text).ok_or_else(|| not_understood(&line))?);
    }
    match unfinished.into_values().next() {
        None => Ok(calls),
        Some((_, call)) => Err(format!("a call never returned: {}", shortened(&call))),
    }
}

/// The bytes of a string argument.
pub(super) fn bytes_of(argument: &str) -> Result<Vec<u8>, String> {
    let wrong = || format!("not a whole string: {}", shortened(argument));
    let quoted = argument.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).ok_or_else(wrong)?;
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = |escaped: &[u8]| match escaped {
        [b'\\', b'x', high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    quoted.as_bytes().chunks(4).map(|escaped| byte(escaped).ok_or_else(wrong)).collect()
}

/// The text of a string argument.
pub(super) fn text_of(argument: &str) -> Result<String, String> {
    String::from_utf8(bytes_of(argument)?).map_err(|error| error.to_string())
}

fn parse(begin: Moment, end: Moment, text: &str) -> Option<Call> {
    let (head, result) = text.rsplit_once("= ")?;
    let (name, arguments) = head.trim_end().strip_suffix(')')?.split_once('(')?;
    let result = result.split(' ').next()?;
    let result = match result.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => result.parse().ok(),
    };
    let result = result.filter(|result| *result >= 0);
    Some(Call { begin, end, name: name.to_owned(), arguments: split(arguments), result })
}

/// Splits at the commas that are in no bracket. Strings are all escapes, so there are none in them.
fn split(arguments: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (position, byte) in arguments.bytes().enumerate() {
        match byte {
            b'[' | b'{' | b'(' => depth += 1,
            b']' | b'}' | b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(arguments[start..position].trim().to_owned());
                start = position + 1;
            }
            _ => {}
        }
    }
    parts.push(arguments[start..].trim().to_owned());
    parts
}

fn not_understood(line: &str) -> String {
    format!("not understood: {}", shortened(line))
}

fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_put_together_with_where_they_began_and_ended() {
        let temporary = tempfile::tempdir().expect("a directory");
        let path = temporary.path().join("trace");
        let lines = "7 openat(AT_FDCWD, \"\\x2f\\x61\", O_RDWR|O_CREAT, 0666 <unfinished ...>\n\
            8 fsync(3)    = 0\n\
            7 <... openat resumed>) = 4\n\
            8 pwrite64(4, \"\\x68\\x69\", 2, 512) = 2\n\
            7 unlink(\"\\x2f\\x62\") = -1 ENOENT (No such file or directory)\n\
            7 +++ exited with 0 +++\n";
        std::fs::write(&path, lines).expect("write");
        let calls = read(&path, 100).expect("readable");
        let seen: Vec<_> = calls.iter().map(|call| (call.name.as_str(), call.begin, call.end)).collect();
        assert_eq!(seen, [("fsync", 104, 105), ("openat", 102, 107), ("pwrite64", 108, 109), ("unlink", 110, 111)]);
        assert_eq!(calls[1].result, Some(4));
        assert_eq!(text_of(&calls[1].arguments[1]).as_deref(), Ok("/a"));
        assert_eq!(bytes_of(&calls[2].arguments[1]), Ok(b"hi".to_vec()));
        assert_eq!(calls[2].arguments[3], "512");
        assert_eq!(calls[3].result, None);
        assert!(bytes_of("\"\\x68\"...").is_err(), "a string that was cut");
    }
}
