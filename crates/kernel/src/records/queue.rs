//! The names of queues. A queue is a name up to a separator; it holds records, and the queues below it.

use contract::limits::QUEUE_DEPTH_MAX;

/// The characters that end the name of a queue.
pub const SEPARATORS: [char; 3] = ['.', ':', '/'];

/// The queue that all others are below of.
pub const ALL_QUEUES: &str = "";

/// The queue of a record: its name up to the last `.`, `:` or `/`, but at most up to the eighth.
///
/// ```
/// use statehouse_kernel::records::queue::queue_of;
/// assert_eq!(queue_of("jobs.email.42"), "jobs.email.");
/// assert_eq!(queue_of("alone"), "");
/// assert_eq!(queue_of("1.2.3.4.5.6.7.8.9.10"), "1.2.3.4.5.6.7.8.");
/// ```
pub fn queue_of(name: &str) -> &str {
    let ends = name.bytes().enumerate().filter(|(_, byte)| is_separator(*byte));
    let last = ends.take(QUEUE_DEPTH_MAX).last();
    last.map_or(ALL_QUEUES, |(at, _)| &name[..=at])
}

/// The queue directly above a queue; none above the one that holds all.
///
/// ```
/// use statehouse_kernel::records::queue::above;
/// assert_eq!(above("jobs.email."), Some("jobs."));
/// assert_eq!((above("jobs."), above("")), (Some(""), None));
/// ```
pub fn above(queue: &str) -> Option<&str> {
    let (end, name) = queue.as_bytes().split_last()?;
    debug_assert!(is_separator(*end), "{queue:?} is no queue");
    let last = name.iter().rposition(|byte| is_separator(*byte));
    Some(last.map_or(ALL_QUEUES, |at| &queue[..=at]))
}

/// The queue directly below `queue` in which everything that starts with `name` is; none if `name` is not below it.
pub(crate) fn child_towards<'name>(queue: &str, name: &'name str) -> Option<&'name str> {
    let rest = name.strip_prefix(queue)?;
    let end = rest.bytes().position(is_separator)?;
    Some(&name[..=queue.len() + end])
}

/// How many queues a queue is nested in, itself included.
pub fn depth(queue: &str) -> usize {
    queue.bytes().filter(|byte| is_separator(*byte)).count()
}

fn is_separator(byte: u8) -> bool {
    SEPARATORS.iter().any(|separator| *separator as u32 == u32::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_queue_is_reached_from_all_queues_and_back() {
        for name in ["", "a", "a.", "a.b", ".", "..x", "a:b/c.d", "é/ü.x", "1.2.3.4.5.6.7.8.9.", "a.b:c/d.e:f/g.h:i/j"]
        {
            let own = queue_of(name);
            let mut path = vec![own];
            while let Some(next) = above(path[path.len() - 1]) {
                path.push(next);
            }
            assert_eq!(path.last(), Some(&ALL_QUEUES), "{name:?}");
            assert_eq!(path.len(), depth(own) + 1, "{name:?}");
            assert!(depth(own) <= QUEUE_DEPTH_MAX, "{name:?}");
            for pair in path.windows(2) {
                assert_eq!(child_towards(pair[1], own), Some(pair[0]), "{name:?}");
            }
            assert_eq!(child_towards(own, own), None, "{name:?}");
        }
    }
}
